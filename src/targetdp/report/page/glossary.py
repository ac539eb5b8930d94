"""Words of the page, explained once."""

GLOSSARY = {
    "B": "How similar two people must be for the guarantee to hide them from each other. Rows are scaled so "
    "that no two people are farther apart than 2: B = 2 hides everybody from everybody (classic differential "
    "privacy), B = 0.25 only people who are much alike.",
    "ε (epsilon)": "How strictly similar people are hidden from each other: the smaller, the stricter.",
    "δ (delta)": "A small allowance for rare cases in which ε does not hold: the smaller, the better.",
    "Exact ε": "What the noise really keeps at a given distance, computed and not estimated.",
    "Best guess": "Of two people, whose row is this? The largest chance, for any attacker with any method, "
    "of being right. A coin is right half of the time.",
    "Status quo, today": "The program on the table as it is, without privacy.",
    "Least noise": "The quietest of our mechanisms that keeps the stated guarantee.",
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
