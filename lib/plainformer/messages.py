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
}
