"""The processes that judge: a warm worker, an inmate that runs answers, a judge that compares."""
