"""The network carries a federation's messages between sites, on Flower, behind a proxy."""
