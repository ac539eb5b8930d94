"""Words of the page, explained once."""

GLOSSARY = {
    "B": "How similar two rows must be for the guarantee to cover the difference between them. Rows are "
    "scaled so that no two are farther apart than 2: B = 2 covers any two (classic differential privacy), "
    "B = 0.25 only rows that are much alike.",
    "ε (epsilon)": "How hard rows within B are to tell apart: the smaller, the harder. It belongs to its B.",
    "δ (delta)": "A small addition to what ε allows: the smaller, the better. It is not the chance that "
    "something goes wrong; the best guess has both ε and δ in it.",
    "Exact ε": "What the noise really keeps at a given distance, computed and not estimated.",
    "Best guess": "An attacker knows everybody else's rows, and that a person's row is one of two, equally "
    "likely: the largest chance, with any method, of being right about which. A coin is right half of "
    "the time.",
    "Status quo, today": "The program on the table as it is, without privacy.",
    "Least noise": "The quietest of our mechanisms that keeps the stated guarantee.",
    "Two rounds": "First all columns of a labelled sample are released, with noise. Weights are learned from "
    "them and the labels. Then one number, a weighted sum, is released of everybody else: noise on one "
    "number can be much smaller. Nobody is in both releases.",
    "The paper's projection": "The mechanism that the scientific paper prints. It keeps more than it states, "
    "and costs the program more.",
    "k-anonymity": "People are put into groups of at least k and get the same row. It guarantees nothing "
    "about what can be learned.",
    "Protection": "From 0 (none) to 1 (safe), for one kind of attack.",
    "Not singled out": "The share of people whom the attack could not pick out of the released table.",
    "Exclusion errors": "Poor people who should get aid and do not.",
    "γ (gamma)": "For every possible table, how often a decision made on the private table agrees with the "
    "one made on the original table, at the least. Not the program's accuracy.",
    "95% interval": "If the noise were drawn again many times, 95 of 100 such intervals would hold the true "
    "mean. It does not speak of other people.",
}
