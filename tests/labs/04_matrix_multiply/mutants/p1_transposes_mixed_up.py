# problem: strides
# loses: strides-turned
# reason: wrong for 3 of 3

prediction = {
    "A · B, warp of 32 × 1": 5,
    "A · B, warp of 16 × 2": 4,
    "A · B, warp of 4 × 8": 9,
    "Aᵀ · B, warp of 32 × 1": 33,
    "Aᵀ · B, warp of 8 × 4": 12,
    "A · Bᵀ, warp of 8 × 4": 2,
}
