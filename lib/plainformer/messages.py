"""What a failing check says: one catalogue, so that another language is another catalogue.

`RULES` holds, for each rung of the ladder in `plainformer.check`, the headline and the next step;
`MISTAKES` holds one sentence for each known mistake. Placeholders in braces are filled by `check`.
"""

RULES: dict[str, tuple[str, str]] = {
    "undefined": (
        "{what}: there is no function to call, got {got}.",
        "Run the cell that defines it; a name assigned to something else hides the function.",
    ),
    "not-written": (
        "{what}: this is not written yet.",
        "Replace the line `raise NotImplementedError` with your code and run the cell.",
    ),
    "crashed": (
        "{what}: the call stopped with {error}",
        "Print the shapes just before that line; the message names the operation.",
    ),
    "returned-nothing": (
        "{what}: got None.",
        "Did the function forget to return? The last line is usually `return ...`.",
    ),
    "type": (
        "{what}: expected {want}, got {got}.",
        "Read the docstring again: it says what comes back.",
    ),
    "keys": (
        "{what}: the dictionary has other keys.\n  missing: {missing}\n  not asked for: {extra}",
        "Copy the keys from the docstring.",
    ),
    "length": (
        "{what}: expected {want}, got {got}.",
        "Compare with what the docstring asks for, item by item.",
    ),
    "rank": (
        "{what}: expected {want}, got {got}.",
        "The number of axes differs: look for a missing or an extra [None], squeeze or sum.",
    ),
    "shape": (
        "{what}: expected shape {want}, got {got}.",
        "Follow the axes by name, operation by operation, until the first wrong one.",
    ),
    "dtype": (
        "{what}: expected {want} numbers, got {got}.",
        "A comparison gives booleans, // gives integers, / gives floats: which does it ask for?",
    ),
    "device": (
        "{what}: expected a tensor on {want}, got one on {got}.",
        "Make new tensors on the device of an argument: `torch.zeros(..., device=x.device)`.",
    ),
    "not-finite": (
        "{what}: {count} of {total} entries are NaN or infinite, the first at {index}.",
        "Look for an exponential of a large number, a division by zero, or an inf that stayed.",
    ),
    "modified": (
        "{what}: the call changed its argument {which}.",
        "Methods that end in _ and assignments like x[0] = ... write into the caller's tensor.",
    ),
    "values": (
        "{what}: {count} of {total} entries differ, the first at {index}.",
        "Compute this entry by hand, then print the intermediate steps.",
    ),
    "number": (
        "{what}: expected {want}, got {got}.",
        "Do the computation on paper once, step by step.",
    ),
    "no-error": (
        "{what}: expected {want}, but the call went through and gave {got}.",
        "Test the argument at the top of the function and raise.",
    ),
    "wrong-error": (
        "{what}: expected {want}, got {got}.",
        "Raise the exception that the docstring names.",
    ),
    "error-words": (
        "{what}: the error message should mention {want}, got {got}.",
        "A good message gives the rule, the value that came, and the way out.",
    ),
    "quiz-form": (
        "{what}: {problem}.",
        "Answer with a dictionary; leave out, or set to None, what you do not want to answer.",
    ),
    "quiz-sealed": (
        "{what}: not every answer is right.",
        "For each item, find the cell of this chapter that settles it and run it.",
    ),
    "quiz-score": (
        "{what}: {right} right, {wrong} wrong, {open} open; "
        "right minus wrong is {score}, this needs {needed}.\n  look again at: {again}",
        "A wrong answer costs what a right one earns: an open one costs nothing.",
    ),
}

# Where a number to work out is judged: headlines that keep it back, and the next step.
UNTOLD: dict[str, str] = {
    "number": "{what}: got {got}, and that is not it.",
    "length": "{what}: got {got}, which is another number of items than asked for.",
}
UNTOLD_STEP = "The right numbers are not told here: check the step before by hand."

# The next step after a crash, by words of the error; others get the step of "crashed" above.
CRASHES: dict[str, str] = {
    "Boolean value of Tensor": "A tensor is neither true nor false: ask `is None`, or use any(), "
    "all() or a comparison of numbers.",
    "NameError": "Define the name in this cell, or use what the first code cell imports: "
    "the grader does not run the cells that only show something.",
    "UnboundLocalError": "A name that a function assigns to is local: give it a value first.",
    "AttributeError": "Look at what stands before the dot: print its type.",
    "TypeError": "Compare the number and the kind of the arguments with what that line expects.",
    "KeyError": "Print the dictionary's keys just before that line.",
    "RecursionError": "The function calls itself without an end.",
    "EinopsError": "Read the pattern against the shape; a merged axis needs a length, like h=3.",
    "ModuleNotFoundError": "Use what the first code cell imports; nothing else is installed.",
}

MISTAKES: dict[str, str] = {
    # 00 Warm-up
    "keepdim_ignored": "This is the shape without keepdim=True, which keeps the named axis, "
    "with length 1.",
    "named_axis_kept": "This keeps the axis that dim= names and drops the other: dim= names "
    "the one that goes.",
    "reduced_axis_stays": "This keeps the named axis with length 1; without keepdim=True it "
    "goes altogether.",
    "inner_axis_kept": "This is the shape before the last product: s is the inner axis there, "
    "and is summed away.",
    "out_as_wide_as_q": "This gives out the width of q; each of its rows is a mix of rows of v.",
    "index_keeps_axis": "This keeps an axis of length 1 where a single index stands; a single "
    "index takes it away.",
    "index_takes_first_axis": "In x[:, 0] the colon keeps the first axis, b; the 0 picks "
    "along the second, t.",
    "scores_swapped": "This is k times q: in q @ k.mT the words that ask (q) give the rows, "
    "those that are asked (k) the columns.",
    "mean_over_words": "This subtracts the mean over the words (dim=1), not each word's own mean.",
    "mean_over_sentence": "This subtracts one mean a sentence, not each word's own mean.",
    "mean_over_everything": "This subtracts one mean of the whole block, not each word's own mean.",
    "keepdim_forgotten": "This is what comes out when the mean loses its last axis (no "
    "keepdim=True): the means then line up with the width, not with the words.",
    "gain_along_width": "This multiplies number j of every word by gain[j]: a gain of shape "
    "(t,) lines up with the last axis, the width.",
    "gain_ignored": "This equals the centred words, not multiplied by the gain.",
    "not_centred": "This equals the words times their gain: no mean was subtracted.",
    "gain_before_mean": "This subtracts the mean after the gain: centre first, then multiply "
    "the difference.",
    "view_without_transpose": "This only cuts the rows into b pieces: reshape keeps the "
    "reading order, so words of different sentences stand together.",
    "axes_not_swapped": "This is position first, sentence second: the two axes are not "
    "swapped yet.",
    "everything_transposed": "This transposes the whole table of rows: the numbers of a word "
    "are torn apart.",
    "width_before_words": "This puts the width before the words in the reshape: the numbers "
    "of a word are mixed.",
    "zero_takes_part": "This equals the result with a 0 in every masked place: it wins where all "
    "allowed scores are negative.",
    "all_for_any": "This equals 0.0 for every row that may not look everywhere; only a row that "
    "may look nowhere gives 0.0.",
    "clamped_at_zero": "This equals the result with everything below zero raised to 0.0; only a "
    "row that may look nowhere gives 0.0.",
    "whole_numbers": "These are integers: Python's 0 makes one, 0.0 makes a float.",
    "mask_inverted": "This equals the result with the mask read the other way round; True "
    "means may look.",
    "mask_ignored": "This equals the result without the mask.",
    "best_of_each_column": "This is the best score of each column, not of each row.",
    "one_best_for_all": "This is one maximum for the whole table: name the axis that goes, dim=-1.",
    "position_for_value": "This is where the best score stands (argmax), not the score itself.",
    "empty_row_keeps_fill": "This is right except for rows that may look nowhere: those give 0.0.",
    "fill_not_low_enough": "This equals the result with -1e9 in the masked places, which wins "
    "against lower scores.",
    "padding_averaged": "This equals the mean over all positions, padding included.",
    "divided_by_all_words": "This sums the real words only, but divides by all t positions.",
    "divided_by_batch_count": "This divides by the number of real words in the whole batch, "
    "not in each sentence.",
    "padding_meant": "This is the mean of the padding: True in the mask means a real word.",
    "not_divided": "This is the sum of the real words, not yet their mean.",
    "empty_divides_by_zero": "This equals 0 divided by 0 for a sentence without real words; it "
    "should give zeros.",
    "padding_multiplied": "This equals the result with the padding multiplied by 0, and 0 times "
    "NaN is NaN: fill, don't multiply.",
    "one_added_to_count": "This divides by one more than the number of real words.",
    "little_added_to_count": "This divides by a little more than the number of real words: "
    "nothing may be added to the count.",
    "zeros_not_counted": "This counts only words with a number other than 0: the mask says "
    "which words are real, not their numbers.",
    "divided_by_rows": "This equals the sums divided by the number of rows; the mean of a row "
    "divides by its length.",
    # 01 From a fixed vector to attention
    "one_padded_row_kept": "Here c is right, but memory keeps the row after the last real one: "
    "places 0 to length - 1 are real.",
    "last_row_of_the_block": "Memory is right, but c is its last row, which is padding in the "
    "shorter sentences.",
    "length_of_the_first": "Memory is right, but c is taken where the first sentence ends, in all "
    "sentences: each has its own length.",
    "as_given_still": "This is the draft as it stood: compare a padded sentence with itself alone.",
    "state_after_padding": "Memory is right, but c is the state after the padding was read, too.",
    "state_one_late": "Memory is right, but c is the state one step after the last real symbol.",
    "padding_not_zeroed": "Here c is right, but memory does not hold zeros at the padded places.",
    "padding_kept": "This gives the padding a share: forbid it before the shares are made.",
    "padding_cut_after": "This cuts the padding off after the softmax: the shares that are left "
    "sum to less than one.",
    "padding_sets_maximum": "This masks after the softmax and divides again: the padding still "
    "sets the maximum, and where it is far above the real scores, 0 is divided by 0. Mask before.",
    "padding_still_sets_maximum": "This masks after the softmax and divides again: the padding "
    "still sets the maximum, and far below it the real states get nothing. Mask before.",
    "queries_share_padding": "This equals a softmax over the queries: the shares of one query must "
    "sum to one over the source, the last axis.",
    "queries_share_nothing": "This equals a softmax over the queries, and in the padding all of "
    "them are -inf: the shares of one query must sum to one over the source, the last axis.",
    "padding_score_zero": "This sets the scores of the padding to 0, and e to the power 0 is 1: it "
    "still gets a share.",
    "one_padding_kept": "This keeps the first padded place: places 0 to length - 1 are real.",
    "last_real_dropped": "This drops the last real place: places 0 to length - 1 are real.",
    "softmax_over_batch": "This equals a softmax over the first axis: shares of different "
    "sentences or queries then sum to one. Each query shares out its own source.",
    "last_state_only": "This equals the last real state, whatever the scores: that is the fixed "
    "vector.",
    "last_row_only": "This equals the last row of the memory, whatever the scores: the fixed "
    "vector, and in padded sentences not even that.",
    "plain_mean": "This equals the plain average of the real states: the scores play no part.",
    "best_state_only": "This equals the one state with the best score: the context mixes all of "
    "them.",
    "scores_as_shares": "This multiplies the states by the scores themselves: make shares of them "
    "first.",
    "scores_returned": "This equals the scores: the shares are their softmax.",
    "tanh_forgotten": "The query has no say here: either it is missing, or the tanh is. Without a "
    "tanh its part is the same for every state, and the softmax does not see it.",
    "tanh_of_each": "The query has no say here: either it is missing, or the tanh is taken of each "
    "part alone. Add the two parts first, then take the tanh.",
    "tanh_outside": "This takes the tanh after the product with v: it belongs before.",
    "parts_multiplied": "This multiplies the two parts inside the tanh: additive attention adds "
    "them.",
    "v_forgotten": "This adds up the hidden numbers as they are: v weighs them.",
    "sigmoid_for_tanh": "This equals the result with a sigmoid in place of the tanh.",
    "w_ignored": "This leaves w out, also where one is given.",
    "w_transposed": "This multiplies by w transposed: here it is query @ w, then the product with "
    "the memory.",
    "softmax_over_axis_1": "This equals a softmax over axis 1, which is the source only where no "
    "axis stands in front: count from the end, dim=-1.",
    "softmax_without_dim": "This equals a softmax without dim=, for which PyTorch guesses an axis "
    "by the number of axes: say dim=-1.",
    "w_twice": "This multiplies both sides by w: only the query is.",
    "scaled_here": "This divides the scores by a square root: that comes in chapter 02, and not "
    "here.",
    "not_divided_yet": "This equals the exponentials before they are divided by the sum of their "
    "row.",
    "cosine_for_product": "This makes all rows one long before the product: here lengths count.",
    "first_memory_for_all": "This mixes the memory of the first sentence for the whole batch: each "
    "row of weights belongs to the memory of its own sentence.",
    "new_state_asks": "The new state is right, but these weights belong to it: the old state asks.",
    "found_before_symbol": "This puts what was found before the symbol: the symbol comes first.",
    "found_not_fed": "The weights are right, but what was found never reaches the cell.",
    "last_state_fed": "The weights are right, but the cell is fed the last source state, not the "
    "mixture.",
    "scores_for_weights_in_step": "This mixes with the scores: make shares of them first.",
    "scores_out_of_step": "The new state is right, but what comes back beside it are the scores, "
    "not the shares.",
    "state_forgotten": "The cell gets zeros for the old state.",
    "one_step_too_few": "That is one too few: the first state must be computed as well.",
    "all_at_once": "These updates cannot all be done at once: each needs the one before.",
    "input_arrow_forgotten": "That is one too few: the arrow from x_1 to h_1 counts as well.",
    "one_arrow_too_many": "That is one arrow too many.",
    "one_after_the_other": "With attention nothing waits: every output looks at every input "
    "directly.",
    "half_the_way": "That is the way through one of the two networks.",
    "vector_at_every_step": "That is the count for a vector that is fed to every step; here h_n "
    "leads to s_1 alone.",
    "average_counted": "That counts the average as a stop of its own; here the arrow goes from h_i "
    "to s_t.",
    "through_the_encoder": "That goes through the whole encoder first: h_1 leads to s_n directly.",
    "both_sides_counted": "That counts the reach to both sides; the way to position 1 goes to the "
    "left only.",
    "kernel_each_layer": "That lets each layer reach a whole kernel further: it is half of what is "
    "left without the middle.",
    "rounded_down": "That rounds down: a last layer that is only partly needed is needed.",
    "one_less_than_n": "With attention nothing waits for its neighbour: every output looks at "
    "every input directly.",
    "whole_kernels_counted": "That counts how many whole kernels fit into n: ask instead how far "
    "one layer reaches from output n, and how far two do.",
    "one_position_a_layer": "That lets each layer reach one position further: a larger kernel "
    "reaches more.",
    "half_kernel_rounded_up": "That counts the middle of the kernel as a step to the side.",
    "all_positions_counted": "That counts n positions; from n to 1 there are n - 1 steps.",
    "one_layer_too_many": "That is one layer too many where n is a power of the kernel.",
    "doubling": "That doubles what is seen with each layer; it is multiplied by the kernel.",
    "float_logarithm": "That is a logarithm in floats, rounded up: for exact powers it may be a "
    "hair too large.",
    "not_dilated": "That is the count without gaps: dilated layers reach further each time.",
    # 02 Scaled dot-product attention
    "normalised_by_sum": "This equals each score divided by the sum of its row; a softmax "
    "exponentiates first.",
    "softmax_down_columns": "This equals a softmax down the columns; each row must sum to one.",
    "softmax_over_everything": "This equals one softmax over the whole tensor; each row has its "
    "own sum.",
    "not_normalised": "This equals the exponentials before they are divided by the sum of their "
    "row.",
    "powers_of_two": "This equals powers of 2 divided by their sum; the softmax takes powers of e.",
    "log_of_softmax": "This equals the logarithm of the softmax.",
    "unstable_exp": "This is what exp() gives without subtracting the largest score of each row "
    "first: it overflows.",
    "one_max_for_all": "This is what one maximum for the whole tensor gives: rows far below it "
    "lose all their weights. Each row needs its own largest score.",
    "unscaled": "This equals the result without dividing the scores by sqrt(d_head).",
    "divided_by_d_head": "This equals the result with the scores divided by d_head, not by its "
    "square root.",
    "divided_by_root_s": "This equals the result with the scores divided by sqrt(s); the number "
    "of keys plays no part.",
    "divided_by_root_t": "This equals the result with the scores divided by sqrt(t); the number "
    "of queries plays no part.",
    "divided_by_root_first": "This equals the result with the scores divided by the square root of "
    "q.size(0), the first axis; the width is the last, q.size(-1).",
    "one_then_halved": "This divides by d_head, then by 2: x ** 1/2 means (x ** 1) / 2. Write "
    "x ** 0.5.",
    "halved_width": "This divides by d_head / 2: x ** 1/2 means (x ** 1) / 2. Write x ** 0.5.",
    "divided_by_root_d_value": "This equals the result with the scores divided by sqrt(d_value); "
    "the width that was summed over is d_head.",
    "multiplied_by_root": "This equals the result with the scores multiplied by sqrt(d_head), not "
    "divided.",
    "transposed_scores": "This is k times q: queries give the rows of the scores, keys the "
    "columns.",
    "weights_for_scores": "This equals the weights: the scores are what stands before the softmax.",
    "memory_ignored": "This takes keys and values from x although a memory was given.",
    "query_from_memory": "This takes the queries from memory: the asking positions are those of x.",
    "queries_and_keys_swapped": "This is q and k in each other's place.",
    "keys_and_values_swapped": "This is k and v in each other's place.",
    "projections_transposed": "This multiplies by the transposed weights: here it is x @ w.",
    "softmax_over_queries": "This equals a softmax over the queries (down the columns); the "
    "weights of one query, a row, must sum to one.",
    "scaled_after_softmax": "This divides after the softmax; the scale belongs before it.",
    "weights_returned": "This equals the weights: they still have to average the values.",
    "two_for_d_head": "This equals the result with the scores divided by sqrt(2); d_head is the "
    "width of one query, count its numbers.",
    "width_for_d_head": "This equals the result with the scores divided by sqrt(512), the width of "
    "another model's tokens; d_head is the width of one query, count its numbers.",
    "no_gradient": "The output is right, but no gradient comes back from it: detach(), item() or "
    "a new tensor of numbers cuts the way.",
    "rounded_weights": "This equals the result with the weights rounded to four digits before the "
    "last product: round only at the end.",
    "means_ignored": "This is right only for means of zero: the means add two terms.",
    "one_component": "This is the variance of one product q_i k_i (or of the scaled score): the "
    "dot product adds up d_head of them.",
    "deviation_for_variance": "This is the standard deviation: the variance is its square.",
    "deviations_not_squared": "This uses standard deviations where variances belong: square them.",
    "second_moment": "This is the mean of the square: the variance subtracts the square of the "
    "mean.",
    "d_head_squared": "This grows as d_head squared: variances of independent terms add up, once "
    "for each term.",
    "diagonal_only": "This has the right diagonal, but raising one score also lowers the other "
    "weights.",
    "outer_forgotten": "This is diag(weights) alone: the outer product of the weights is missing.",
    "diagonal_forgotten": "This is the outer product alone: diag(weights) is missing.",
    "sign_flipped": "This has the opposite sign: a weight grows with its own score.",
    "scores_for_weights": "This puts the scores where the weights belong: take the softmax first.",
    "one_minus_everywhere": "This is w_i (1 - w_j) everywhere: the 1 belongs to the diagonal only.",
    # 03 Masks and heads
    "diagonal_hidden": "This hides each position from itself: a query may look at its own key.",
    "one_ahead": "This lets each position see one step ahead: the last open key of a query is its "
    "own.",
    "top_left": "This lines queries and keys up at the first position: the t queries are the last "
    "t of the s positions.",
    "offset_negated": "This moves the diagonal by t - s where it is s - t: with fewer queries than "
    "keys, each sees more, not less.",
    "looks_forward": "This opens what comes after, not what came before.",
    "past_only_one": "This opens only the own key of each query: all keys before it are open, too.",
    "one_too_many": "This opens one key too many: the keys count from 0, so key number `length` is "
    "padding.",
    "one_too_few": "This hides the last real key: positions 0 to length - 1 are real.",
    "padded_on_the_left": "This puts the padding in front: here the real tokens come first.",
    "queries_hidden": "This hides padded queries, as (b, s, 1): a padding mask hides keys, along "
    "the last axis.",
    "query_axis_missing": "This has no axis for the queries: [:, None, :] adds it, with length 1.",
    "both_sides_hidden": "This hides padded queries, too, as (b, s, s): the queries' axis has "
    "length 1, all of them see the same keys.",
    "never_empty": "This opens a key of an empty sequence: a length of 0 leaves nothing open.",
    "masked_after": "This sets weights to 0 after the softmax: what is left of a row no longer "
    "sums to one. Mask the scores before it.",
    "renormalised_late": "This masks after the softmax and divides again: where a hidden score is "
    "far above the open ones, that is 0 divided by 0. Mask the scores before it.",
    "scores_times_mask": "This multiplies the scores by the mask: a score of 0 is no small score, "
    "its weight is not 0.",
    "empty_row_nan": "This gives NaN where a query sees nothing: a row of -inf has no softmax. "
    "Such a row gives zeros.",
    "empty_row_uniform": "This gives every key the same weight where a query sees nothing; such a "
    "row gives zeros.",
    "fill_kept": "This equals the result with -1e9 in the masked places and nothing after it: -1e9 "
    "wins against lower scores, and closed keys keep a weight.",
    "fill_far_too_high": "This equals the result with -100 in the masked places, which is no "
    "small score where the others are smaller.",
    "heads_by_view": "This is a reshape to (b, h, t, d_head) without a transpose: each head gets "
    "some of the tokens in place of some of the columns.",
    "split_by_view_only": "This reshapes to (b, h, t, d_head) without a transpose, so each head "
    "gets some of the tokens in place of some of the columns; it merges rightly.",
    "heads_interleaved": "This gives head i every h-th column: a head's columns stand together.",
    "heads_not_in_front": "This is (b, t, h, d_head): the heads' axis belongs before the tokens'.",
    "heads_transposed": "This has tokens and width of a head in each other's place.",
    "merged_by_view": "This reshapes the heads to (b, t, d_model) without moving their axis back: "
    "numbers of different tokens end up in one row.",
    "merged_interleaved": "This takes one number of each head in turn: a head's columns stand "
    "together.",
    "heads_added": "This adds the heads up: they are put side by side.",
    "scaled_by_root_d_model": "This divides by sqrt(d_model): a score is a product over the width "
    "of one head, d_head.",
    "out_forgotten": "This is right up to the last product: w_o is missing.",
    "one_head_only": "This is one head of the full width: n_heads plays no part.",
    "draft_unchanged": "This is the draft as it stood.",
    "view_and_scale": "The mask is right now. How heads are cut out and put together, and what "
    "the scores are divided by, is not.",
    "view_and_mask": "The division is right now. How heads are cut out and put together, and the "
    "mask, is not.",
    "scale_and_mask": "The heads are cut out and put together rightly now. The division and the "
    "mask are not right.",
    "heads_multiply_work": "This counts scores and mixture h times too often: each head is only "
    "d_model / h wide.",
    "heads_divide_work": "This counts scores and mixture of one head: there are h of them.",
    "one_flop_each": "This counts multiplications only: a multiply-add is 2 FLOPs.",
    "memory_length_ignored": "This projects keys and values for t positions: there are s of them.",
    "out_projection_forgotten": "This counts three projections: the one after the heads is the "
    "fourth.",
    "heads_multiply_parameters": "This gives every head d_model columns: each has d_model / h.",
    "one_table_for_all_heads": "This counts one table of weights a sequence: each head has its "
    "own.",
    "batch_forgotten": "This is the cost of one sequence: there are b of them.",
    "biases_counted": "This counts biases: the layer has none.",
    "only_last_changed": "This catches only what looks at the last position: change each "
    "position's future, not the last token alone.",
    "only_first_watched": "This watches the first output only: a leak may start later.",
    "own_token_changed": "This also watches outputs whose own token was changed: these may move.",
    "rounding_counts": "This calls rounding a leak: differences up to 1e-5 do not count.",
    "first_sentence_only": "This misses what leaks in the second sequence of the batch only: run "
    "the whole batch, and watch every sequence.",
    "last_cut_missing": "This never changes the last position alone: the one before it may see it.",
    "first_cut_missing": "This never watches the first output with all others changed: it may see "
    "the second.",
    "text_cut_off": "This takes the future away, and an honest layer may count tokens: keep the "
    "length, change the numbers.",
    "small_leaks_pass": "This lets small leaks pass: anything above 1e-5 counts.",
    "verdict_inverted": "This is the opposite answer: True means that it looks ahead.",
    "next_token_only": "This catches only what looks one step ahead: a leak may skip some "
    "positions.",
    "root_forgotten": "The scores of these q and k are too small by sqrt(d_head): the product is "
    "still divided by it.",
    "root_the_wrong_way": "The scores of these q and k are too small by d_head: multiply by the "
    "root that the scores are divided by.",
    "smallest_kept": "This keeps the smallest singular values: the largest carry most.",
    "singular_values_twice": "This puts the singular values into q and into k; their product has "
    "them twice. Give each the root, or give them to one.",
    "singular_values_forgotten": "This leaves the singular values out.",
    "first_columns_kept": "This keeps the first d_head columns of the scores and drops the rest; "
    "another table of this rank comes closer.",
    # 04 Where is a token?
    "only_reversed": "This tries one order only, the tokens read backwards: a layer may bear that "
    "and still know others.",
    "only_turned_round": "This only turns the ring of tokens: a layer that looks at neighbours in "
    "a ring bears it.",
    "ends_swapped_only": "This exchanges the first and the last token only: other pairs may show "
    "what these do not.",
    "first_two_only": "This exchanges the first two tokens only: other pairs may show what these "
    "do not.",
    "output_must_stay": "This asks for outputs that do not move at all: they should move along "
    "with their tokens.",
    "shuffled_back_wrongly": "This compares with the outputs shuffled the other way: apply the "
    "same order to inputs and outputs.",
    "width_shuffled": "This shuffles the numbers within the tokens: the tokens should change "
    "places, along axis 1.",
    "first_sequence_alone": "This watches the first sequence only: a layer may treat another one "
    "differently.",
    "sums_compared": "This compares sums over the positions: they stay the same whoever stands "
    "where.",
    "exact_equality": "This counts rounding: differences up to 1e-5 do not.",
    "coarse_tolerance": "This lets small differences pass: anything above 1e-5 counts.",
    "equivariant_inverted": "This is the opposite answer: True means that order is not known.",
    "i_for_2i": "This has i in the exponent where 2i belongs: every pair but the first turns too "
    "fast.",
    "four_i_for_2i": "This divides 2i by half of d_model: the exponent is 2i / d_model, and the "
    "hands turn too slowly.",
    "frequency_each_column": "This gives each column a frequency of its own: a sine and the cosine "
    "after it are one hand.",
    "twice_the_column": "This takes the number of the column for the number of the pair: columns "
    "2i and 2i + 1 both belong to pair i.",
    "cosine_first": "This has the cosines in the even columns and the sines in the odd ones.",
    "sines_then_cosines": "This puts all sines first and all cosines after them: here they "
    "alternate.",
    "sines_only": "This has the sine in both columns of a pair: the odd one is the cosine.",
    "hands_get_faster": "This multiplies by a power of the base that is above 1: the later pairs "
    "turn slower, not faster.",
    "degrees": "This takes the angle for degrees: sin and cos take radians, and so it is meant.",
    "turns_for_radians": "This takes the angle for full turns: a factor of 2 pi too many.",
    "positions_from_one": "This counts the positions one too far: position 0 has not turned.",
    "rows_for_positions": "This counts the rows from 0: the positions are given, and may start "
    "anywhere.",
    "base_ignored": "This always takes the base 10000: it is an argument.",
    "last_is_the_base": "This spaces the frequencies so that the last one is exactly one over the "
    "base: the exponent is 2i / d_model.",
    "moves_backwards": "This moves the vectors back by k: look where the minus stands.",
    "no_minus": "This has no minus: one of the two sines has one.",
    "sine_for_cosine": "This has sine and cosine in each other's place: for k = 0 nothing moves.",
    "mirror": "This is a mirror and no turn: both cosines have a plus.",
    "blocks_by_halves": "This makes row i and row i + pairs a pair: here neighbours are one.",
    "first_frequency_only": "This turns all pairs by the first frequency: each has its own.",
    "one_step_only": "This is the matrix for one step: the angle is k times the frequency.",
    "frequencies_ignored": "This turns all pairs by k radians: the angle is k times the frequency "
    "of the pair.",
    "divided_by_frequency": "This divides k by the frequency: multiply.",
    "parts_of_w_swapped": "This lets the word meet the rows of w that belong to the place, and the "
    "other way round.",
    "place_meets_word_rows": "This lets the place meet the first rows of w: those belong to the "
    "word, which stands first.",
    "mean_in_word_table": "This moves a part of the places into the table of words: a word of "
    "zeros then has a row.",
    "tables_swapped": "This returns the table of places first: words come first.",
    "beside_not_above": "This puts the two side by side: the matrix gets more rows, not more "
    "columns.",
    "half_each": "This takes half of each: both come in whole.",
    "zeros_below": "This has zeros where the place comes in: the sum heeds both.",
    "rows_twice": "This repeats each row where it stands: first come all rows for e, then all for "
    "u.",
    "buckets_of_an_encoder": "These are an encoder's buckets, half of them for keys that come "
    "later: in a decoder all are for those behind.",
    "keys_ahead_bucketed": "This counts how far ahead a key lies: query minus key is how far back.",
    "both_sides_alike": "This treats keys that come later like those as far behind: they get "
    "bucket 0.",
    "queries_from_zero": "This lets the queries start at position 0: they stand at the last t of "
    "the s positions.",
    "rounded_up": "This rounds the wide buckets up: down is asked for.",
    "rounded_to_nearest": "This rounds the wide buckets to the nearest: down is asked for.",
    "no_wide_buckets": "This gives each distance a bucket of its own until they run out: the "
    "second half of the buckets is wide.",
    "log_of_the_distance": "This takes the logarithms of r and of max_distance: both are divided "
    "by half first.",
    "last_bucket_unused": "This never uses the last bucket: n_buckets - 1 is the highest.",
    "heads_last": "This is (t, s, h): the heads come first.",
    "further_is_better": "This adds what should be subtracted: the further away, the lower.",
    "keys_ahead_raised": "This raises the scores of keys ahead: distance counts to both sides.",
    "keys_ahead_free": "This gives keys ahead a 0: distance counts to both sides.",
    "heads_from_zero": "This counts the heads from 0, so that the first slope is 1: they count "
    "from 1.",
    "halved_each_head": "This halves the slope with each head, whatever their number: so it is "
    "with eight heads only.",
    "slopes_reversed": "This gives the steepest slope to the last head: the first has it.",
    "one_slope_for_all": "This gives all heads the slope of the first.",
    "slopes_in_e": "These are powers of e: the slopes are powers of 2.",
    "turned_clockwise": "This turns clockwise: look where the minus stands.",
    "pairs_half_apart": "This pairs number i with number i + d_head / 2: here neighbours are "
    "pairs.",
    "read_woven_put_halves": "The numbers are turned rightly, but put down in another order: first "
    "of all pairs, then second of all pairs.",
    "read_halves_put_woven": "This takes the pairs half a head apart and puts them down as "
    "neighbours.",
    "angles_and_pairs_mixed": "The angles are those of neighbours, but the partners are half a "
    "head apart: two layouts are mixed.",
    "sine_cosine_swapped": "This has sine and cosine in each other's place: at position 0 nothing "
    "turns.",
    "rope_no_minus": "This has no minus: a turn has one.",
    "first_number_overwritten": "This uses the new first number to make the second one: both need "
    "the old pair.",
    "one_angle_for_all_pairs": "This turns all pairs by the frequency of the first.",
    "rope_frequencies_ignored": "This turns all pairs by the position itself: multiply by the "
    "frequency of the pair.",
    "waves_added": "This adds sines and cosines: here the numbers are turned.",
    "converted_back": "This is the way back, from half-split to interleaved: with four rows a head "
    "the two are the same.",
    "heads_mixed": "This reorders all rows as one head: each head is reordered on its own.",
    "heads_mixed_and_back": "This reorders all rows as one head, and it is the way back.",
    "not_converted": "This leaves the rows as they were.",
    "odd_rows_first": "This puts the odd rows of a head first: the even ones come first.",
    "heads_interleaved_rows": "This deals the rows out to the heads in turn: a head's rows stand "
    "together.",
    "counted_from_zero_again": "This counts the new tokens from 0 again: n were read before.",
    "one_position_late": "This puts the new tokens one position too far on: the first of them "
    "stands at n.",
    "one_position_early": "This puts the new tokens one position too early: the first of them "
    "stands at n.",
    "kept_turned_again": "This turns the kept keys again: they were turned when they came.",
    "all_turned_again": "This turns all keys once more before the scores are made: each is turned "
    "once, when it comes.",
    "axes_reshaped": "The shape is right and the numbers are in wrong places: moving the heads to "
    "the front is a permute, not a reshape.",
    "values_turned_too": "This turns the values, too: only queries and keys are turned.",
    "query_not_turned": "This does not turn the new queries.",
    "new_key_not_turned": "This does not turn the new keys.",
    "kept_unturned": "The output is right, but the new keys are kept unturned: the next call takes "
    "them for turned.",
    "top_left_mask": "This lines queries and keys up at the first position: the new tokens are the "
    "last of the text.",
    "no_mask_among_new": "This lets a new token see the new ones after it.",
    "new_ones_in_front": "This puts the new keys and values in front of the kept ones.",
    "cache_not_looked_at": "This looks at the new tokens only: the output needs the kept ones.",
    "made_faster": "This makes the pairs faster: a longer text needs slower ones.",
    "slowed_twice": "This divides by the factor twice.",
    "all_slowed_alike": "This slows all pairs by the whole factor.",
    "last_not_fully_slowed": "This slows the last pair by less than the factor: divide i by "
    "pairs - 1.",
    "pairs_from_one": "This slows the first pair already: pairs count from 0.",
    "fast_ones_slowed": "This slows the fast pairs and keeps the slow ones: it is the other way "
    "round.",
    "factor_grows_evenly": "This lets the factor grow evenly from pair to pair: its power does.",
    "radians_for_turns": "This counts radians: a full turn is 2 pi of them.",
    "gamma_not_clamped": "This lets gamma leave the range from 0 to 1.",
    "no_mixture": "This has no mixture: between the two limits gamma grows evenly.",
    "factor_mixed": "This mixes the divisors: mix the frequencies.",
    # 05 Fewer keys and values
    "positions_restart": "This counts positions from 0 at every call: new tokens stand behind "
    "those read before.",
    "keys_turned_again": "This turns kept keys a second time: they are kept turned, so turn only "
    "the new ones.",
    "keys_not_turned": "This turns the queries only: keys are turned as well.",
    "keys_kept_unturned": "The keys are kept as they came: keys are turned as well, and kept so.",
    "queries_not_turned": "This turns the keys only: queries are turned as well.",
    "values_turned": "This turns the values, too: position belongs to queries and keys.",
    "piece_mask_top_left": "This lines queries and keys up at the first key: the t queries are the "
    "last t of the s tokens.",
    "piece_without_mask": "This hides nothing: in a piece of several tokens, the earlier ones must "
    "not see the later ones.",
    "later_piece_without_mask": "The first piece is right. Later ones hide nothing: in a piece of "
    "several tokens, the earlier ones must not see the later ones.",
    "newest_key_hidden": "This hides each token from itself: it may look at its own key.",
    "newest_in_front": "This puts new keys and values in front of the old ones: the oldest come "
    "first.",
    "cache_not_read": "This looks at the new tokens only: the kept keys and values are not read.",
    "old_queries_ask_again": "This gives a row for old tokens, too: only the new ones ask.",
    "one_by_one_only": "This reads token by token only: some faults show in longer pieces.",
    "only_one_piece": "This reads x in one piece only, so the cache is never used.",
    "two_pieces_only": "This cuts once only: some faults show from the third piece on.",
    "prompt_then_one_by_one": "This tries a first piece and then single tokens: some faults show "
    "when a later piece is longer.",
    "last_output_only": "This compares the last output only: an earlier one may be wrong.",
    "first_sentence_compared": "This compares the first sequence of the batch only: watch all of "
    "them.",
    "cache_not_handed_on": "This starts every piece with None: hand on what the call before "
    "returned.",
    "few_pieces_only": "This cuts into three pieces at most: some faults come with the fourth.",
    "four_pieces_only": "This cuts into four pieces at most: x can be cut into as many as it has "
    "tokens.",
    "like_pieces_only": "This cuts into pieces of one length: some faults need unlike ones.",
    "differences_cancel": "This adds the differences up, and some cancel: each entry counts alone.",
    "mean_difference": "This takes the mean difference: one entry that is off disappears among "
    "many.",
    "one_way_is_enough": "This is content with one way of cutting: all of them must agree.",
    "nothing_turned": "This turns neither queries nor keys.",
    "old_not_handed_on": "The old keys and values are read and then lost: hand them on with the "
    "new ones.",
    "rounding_is_a_fault": "This calls rounding a fault: differences up to 1e-4 do not count.",
    "small_faults_pass": "This lets small faults pass: anything above 1e-4 counts.",
    "nan_passes": "This lets NaN pass: a comparison with NaN is False, so ask what is near, not "
    "what is far.",
    "agreement_inverted": "This is the opposite answer: True means that they agree.",
    "keys_only_counted": "This counts one row a token and head: there are a key and a value.",
    "queries_counted_as_kept": "This counts queries as well: nobody keeps them.",
    "three_kept": "This counts three rows a token and head: a key and a value are two.",
    "query_heads_counted": "This counts query heads: only heads of keys and values keep anything.",
    "one_layer_counted": "This is one layer: each has a cache of its own.",
    "bits_for_bytes": "This takes bits for bytes: a byte has 8 bits.",
    "sixteen_bits_assumed": "This takes 16 bits a number, whatever `bits` says.",
    "one_sequence_counted": "This is the cache of one sequence: there are b of them.",
    "room_for_one_sequence": "This gives all the room to one sequence: b of them share it.",
    "decimal_gigabytes": "This takes 8,000,000,000 bytes for the room: 8 GiB are 2**33.",
    "ratio_upside_down": "This is the ratio upside down: how many times smaller, not what part.",
    "groups_share_the_work": "This counts FLOPs for g heads: all h query heads do their own "
    "products.",
    "every_head_reads_anew": "This reads keys and values once for every query head: heads of a "
    "group share one reading.",
    "every_query_reads_anew": "This reads keys and values once for every new token: the t queries "
    "share one reading.",
    "batch_shares_the_cache": "This reads one cache for the whole batch: every sequence has its "
    "own.",
    "keys_only_read": "This reads one row a token and head: there are a key and a value.",
    "times_added": "This adds the two times: the bound is the longer one.",
    "shorter_time_taken": "This takes the shorter time: neither can be beaten, so the longer "
    "decides.",
    "limits_swapped": "The numbers are right; compute and memory are in each other's place.",
    "intensity_upside_down": "This is bytes per FLOP: intensity is FLOPs per byte.",
    "heads_tiled": "This gives query head i the keys and values of head i modulo g, as `repeat` "
    "does: neighbours share.",
    "keys_tiled_only": "The values are right; the keys go round, head after head, where neighbours "
    "share.",
    "first_kv_head_for_all": "This lets all query heads look at head 0 of keys and values.",
    "kv_heads_averaged": "This averages the heads of keys and values: each group has its own.",
    "queries_averaged": "This averages the queries of a group: every query head asks for itself.",
    "neighbours_not_pooled": "This averages heads that stand apart: a group is heads next to each "
    "other.",
    "heads_summed": "This is the sum of each group: the average divides by how many there are.",
    "first_of_group_kept": "This keeps the first head of each group: average all of them.",
    "last_of_group_kept": "This keeps the last head of each group: average all of them.",
    "neighbouring_columns_pooled": "This averages neighbouring columns, which belong to one head: "
    "average the same number of different heads.",
    "first_heads_kept": "This keeps the first heads and drops the rest.",
    "averages_for_every_head": "This has the averages right, but once for every old head: one for "
    "each group is left.",
    "root_of_content_only": "This divides by sqrt(d_head): a score sums over d_head + d_rope "
    "numbers.",
    "root_of_latent_width": "This divides by the root of d_latent + d_rope: the keys are d_head + "
    "d_rope wide.",
    "parts_divided_alone": "This divides each part by its own root: their sum is divided, by one "
    "root.",
    "position_left_out": "This leaves the position out: the turned parts belong to the score.",
    "content_left_out": "This scores by position alone: the content parts belong to the score.",
    "keys_handed_over": "This mixes keys: values are made with w_uv.",
    "first_head_projects_all": "This takes the matrices of head 0 for all heads: each has its own.",
    "root_of_long_query": "This divides by the root of the long query's width: the scores are "
    "those of the plain form, d_head + d_rope wide.",
    "up_not_turned_round": "This multiplies the query by w_uk as it stands: a query is projected "
    "the other way round, by its transpose.",
    "query_not_lengthened": "This asks with the query as it is: it must be projected to the "
    "latent's width.",
    "values_matrix_asks": "This projects the query with w_uv, which makes values: keys are made "
    "with w_uk.",
    "position_first": "This puts the turned query in front: what is kept is the latent, then the "
    "turned key.",
    "scores_mixed": "This mixes with the scores: make shares of them first.",
    "latents_handed_over": "This is the mixture of latents: w_uv still has to make values of it.",
    # 06 Long sequences
    "window_one_too_wide": "This sees one position too many: a causal window of w counts the query "
    "itself, so it reaches w - 1 back.",
    "window_one_too_narrow": "This sees one position too few: count the open cells of a row in the "
    "middle.",
    "window_w_on_each_side": "This window is twice too wide: w is both sides together, w / 2 each.",
    "window_half_of_causal": "This cuts a window with two sides in half: a causal window of w "
    "reaches w - 1 back.",
    "window_both_ways": "This looks ahead, too: a causal window looks back only.",
    "window_back_only": "This looks back only, where the window has two sides.",
    "causal_without_window": "The causal half has no far end: a query sees w positions, not all "
    "before it.",
    "causal_both_ways": "The causal half looks ahead as well: a query sees what came before it "
    "and itself.",
    "sides_one_short": "With two sides, each is one position short: w / 2 on each.",
    "window_ignored": "The window plays no part here: this is what attention without it gives.",
    "first_rows_counted_full": "This counts w cells in every row: the first rows have fewer.",
    "own_cell_forgotten": "This leaves out each query's own cell.",
    "own_place_counted_in": "This lets each layer reach w back: w counts the query itself, so "
    "w - 1 are left for the way.",
    "one_layer_only": "This is what one layer reaches: each further layer starts where it ends.",
    "itself_counted": "This counts the position itself: asked is how far back it goes.",
    "half_of_it": "This takes half a window each layer: a causal window has one side only.",
    "layers_multiply": "This multiplies with each layer: windows of one width add up.",
    "whole_windows_counted": "This counts how many whole windows fit into n: ask how far one layer "
    "reaches back, and how far two do.",
    "one_too_many_where_it_fits": "That is one layer too many where the layers end exactly on "
    "position 0.",
    "itself_forgotten": "This leaves the position itself out.",
    "whole_fields_added": "This adds whole windows: the next one starts at the edge of the last, "
    "not beside it.",
    "one_side_only": "This counts one side: the window has two.",
    "one_look_is_enough": "One layer is enough for the global token only: two others see each "
    "other through it.",
    "global_token_ignored": "This is what windows give without the global token.",
    "there_back_and_out": "That is one too many: to the global token, and from it.",
    "normaliser_missing": "This is the sum before it is divided: the weights of a query do not sum "
    "to one yet.",
    "normaliser_not_causal": "The sum ends at the query, but what it is divided by runs over all "
    "keys, the later ones too.",
    "divided_by_the_number_of_keys": "This divides by the number of keys, not by the sum of the "
    "products of features.",
    "sums_over_all_keys": "This looks ahead: with causal=True both sums end at the query.",
    "always_causal": "With causal=False every query sees every key; these sums end at the query.",
    "own_key_left_out": "This leaves each query's own key out: the sums end at it, and include it.",
    "features_forgotten": "This equals the result with q and k as they are: take their features "
    "first.",
    "elu_without_one": "These are features elu(x), which may be negative: it is elu(x) + 1.",
    "softmax_still": "This is softmax attention: here products of features stand in place of the "
    "exponentials.",
    "scaled_before_features": "This divides q by sqrt(d_head) first: linear attention does not.",
    "features_of_values": "This takes features of the values, too: they are averaged as they are.",
    "reads_before_writing": "This reads the old state: the token sees itself, so write first.",
    "newest_key_normalises": "This divides by the product with the newest key alone: z sums the "
    "features of all keys.",
    "state_overwritten": "This keeps the newest token only: add what it writes to the old sums.",
    "z_not_updated": "This divides by the old z, and returns it: add the features of the new key.",
    "z_counts_tokens": "This adds 1 to z for a token: add the features of its key.",
    "outer_transposed": "This adds v k^T: rows of kv belong to features, columns to values.",
    "old_state_returned": "The output is right, but the state that comes back is the old one.",
    "block_does_not_look_back": "The first queries of a block miss keys of the block before it.",
    "whole_block_before": "This opens the whole block before each block: most of its queries reach "
    "less far.",
    "padding_in_front_shares": "This gives the padding in front of the text a share: hide it.",
    "global_rows_only": "The global tokens see everything, but nobody far away sees them.",
    "global_columns_only": "Everybody sees the global tokens, but they see their window only.",
    "one_projection_for_both": "This takes the ordinary q, k and v for the rows of global tokens, "
    "too: they have their own.",
    "global_query_only": "This takes global queries with ordinary keys and values: a global token "
    "looks at global_k and global_v.",
    "global_keys_only": "This lets a global token ask with its row of q: it asks with global_q.",
    "global_key_for_local": "This shows global_k and global_v of a global token to the others: "
    "they see its ordinary key and value.",
    "global_key_counted_twice": "This counts a global token twice where it stands in the window, "
    "too.",
    "one_side_halved": "This halves one_sided: it counts the neighbours on each side already.",
    "everybody_global": "This lets everybody see everything.",
    "shared_page_overwritten": "A sequence wrote into a page that another one uses: copy a shared "
    "page before writing.",
    "page_leaked_by_copy": "After a copy the old page still counts a user too many, so it never "
    "gets free.",
    "pages_leaked_by_free": "The pages of a freed sequence never get free again.",
    "shared_page_freed": "This frees pages that another sequence still uses: count the users.",
    "shared_page_leaked": "A shared page never gets free: count down every user that goes.",
    "fork_copies_everything": "This copies all pages at the fork: they are shared until somebody "
    "writes.",
    "fork_not_counted": "The fork shares the pages, but they count one user only.",
    "page_taken_too_early": "This takes the next page as soon as one is full: wait for the token.",
    "page_for_each_token": "This takes a page for each token: a page holds page_size of them.",
    "pages_rounded_down": "This rounds down: a page that is filled in part is a page.",
    "tokens_laid_end_to_end": "This lays all sequences end to end: a page belongs to one sequence.",
    "one_page_too_many": "That is one page too many where a length fills its pages exactly.",
    "all_as_the_longest": "This takes all sequences for as long as the longest.",
    "rest_for_gap": "This counts the tokens of the last pages, not their empty places.",
    "full_page_counted_empty": "That counts a whole empty page where a length fills its pages "
    "exactly.",
    "filled_for_empty": "These are the places that are filled.",
    "one_room_for_all": "This reserves for one sequence: each gets a room of its own.",
    "whole_rooms_counted": "This is all that is reserved: take away what is filled.",
    "nothing_shared": "This gives each answer its own copy of the prompt.",
    "partial_page_shared": "A page that holds the end of the prompt cannot hold several answers: "
    "it is copied by those who write.",
    "original_page_kept": "The last answer to write need not copy: it is the only user by then.",
    "prompt_not_counted": "This leaves out the full pages of the prompt, which are there once.",
    "one_answer_only": "This is the count for a single answer.",
    "old_sum_not_rescaled": "This adds to the old sum as it was: it was relative to the old "
    "largest score, so bring it along.",
    "rescaled_upside_down": "This multiplies the old sum by exp(new - old): a larger largest "
    "score makes it smaller.",
    "largest_from_zero": "This takes the largest score for at least 0: scores far below 0 are "
    "lost. Nothing has been seen yet, so begin with -inf.",
    "largest_of_piece_only": "This keeps the largest score of the newest piece: m is the largest "
    "so far.",
    "new_sum_by_own_largest": "This takes the new scores relative to the largest of their own "
    "piece: both sums must be relative to the same number.",
    "largest_not_taken_off": "This takes the exponentials of the scores as they are: take the "
    "largest off first.",
    "one_largest_for_all": "This takes one largest score for all rows: each row has its own.",
    "empty_piece_nan": "A row that has seen nothing gives NaN: -inf minus -inf is not a number. "
    "It stays at (-inf, 0).",
    "parts_averaged": "This gives every part the same say: a part with larger scores counts more.",
    "parts_added": "This adds the parts: each is an average already, so average them.",
    "weighted_by_lse": "This weighs by lse itself: it is a logarithm, of any sign.",
    "shared_over_queries": "The weights of one query sum to 1 over the parts, not over the "
    "queries.",
    "powers_overflow": "The power exp(lse) overflows where lse is large: take the largest lse off "
    "first.",
    "largest_lse_only": "The output is right; lse is the largest of the parts': sum their powers.",
    "lse_added": "The output is right; lse is the sum of the logarithms: it is the logarithm of a "
    "sum.",
    "lse_averaged": "The output is right; lse is the mean of the parts': it is that of all scores.",
    "output_not_rescaled": "The weighted sum of values is not brought along when a larger score "
    "comes.",
    "total_not_rescaled": "The sum of exponentials is not brought along when a larger score comes.",
    "nothing_rescaled": "The old sums are not brought along when a larger score comes.",
    "divided_in_the_loop": "This divides after every tile: sums go on as sums, divide once at the "
    "end.",
    "tiles_averaged": "This averages the tiles' own results: a tile with larger scores counts "
    "more.",
    "last_tile_only": "This equals attention to the last tile of keys alone.",
    "lse_without_largest": "The output is right; lse lacks the largest score, which was taken off.",
    "total_for_lse": "This hands in the sum of exponentials itself: lse is m plus its logarithm.",
    "last_key_dropped": "This hides one key too many at the end: keys 0 to s - 1 are real.",
    "lse_without_logarithm": "The output is right; lse adds the sum to the largest score: take "
    "the logarithm of the sum.",
    "tail_ignored": "What lies in memory past the last key is counted like a key.",
    "tail_gets_zero": "Past the last key the score is 0 here, and exp(0) is 1: 0 is no small "
    "score.",
    "tail_dropped": "The keys after the last whole tile are left out.",
    "tail_values_kept": "The weights past the last key are 0, but 0 times NaN is NaN: the values "
    "there must go, too.",
    "masked_after_exponential": "The tail is hidden after the exponential: it has taken part in "
    "the largest score by then.",
    "one_key_too_many": "This takes one key too many: key number s does not exist.",
    "full_tile_hidden": "Where tiles divide the keys, the last tile is a whole one: nothing is "
    "hidden in it.",
    "every_tile": "This takes every tile, those that nobody sees included.",
    "edge_tiles_skipped": "Tiles of which the queries see a part are left out.",
    "edge_tiles_unmasked": "Tiles on the edge are taken whole: hide what comes after each query.",
    "first_query_decides": "The first query of a tile decides here how far all look: the last "
    "sees furthest.",
    "keys_read_once": "This reads keys and values once: every tile of queries meets all of them.",
    "values_not_counted": "Keys are counted here, values are not.",
    "queries_read_again": "This reads the queries again for each tile of keys: here they stay, "
    "and keys and values pass by.",
    "both_read_again": "This reads the queries for each of their tiles: a query belongs to one "
    "tile.",
    "tiles_by_width": "The number of passes over the keys is that of the tiles of queries.",
    "own_queries_not_counted": "The queries themselves are read, too, once.",
    "lse_not_counted": "One number a query is missing: its log-sum-exp.",
    "scores_written": "The scores are never written here.",
    "written_for_each_tile": "A query's output is written once, when all its keys have passed.",
    "half_the_flops": "That is half: there are two products, and a multiply-add counts two.",
    "work_divided": "Tiles move less; they do not compute less.",
    "table_written_once": "The table is moved four times: scores written and read, weights "
    "written and read.",
    "table_twice": "The table is moved four times: scores written and read, weights written and "
    "read.",
    "table_three_times": "The table is moved four times: scores written and read, weights written "
    "and read.",
    "table_only": "Queries, keys, values and the output move, too.",
    "half_of_all": "The tiles on the diagonal are visited whole, so it is more than half.",
    "edge_tiles_not_counted": "The tiles on the diagonal are visited, too.",
    "sums_not_divided": "The sums are not divided by the sum of the exponentials.",
    "program_number_forgotten": "Only the first tile of queries is written: which one is a "
    "program's own says its number.",
    "stored_past_the_end": "Rows past the last query were written: store with a mask.",
}
