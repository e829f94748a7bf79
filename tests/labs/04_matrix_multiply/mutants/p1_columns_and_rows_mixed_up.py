# problem: strides
# loses: strides-plain, strides-turned
# reason: wrong for 3 of 3

prediction = {
    "A · B, warp of 32 × 1": 33,
    "A · B, warp of 16 × 2": 17,
    "A · B, warp of 4 × 8": 5,
    "Aᵀ · B, warp of 32 × 1": 5,
    "Aᵀ · B, warp of 8 × 4": 2,
    "A · Bᵀ, warp of 8 × 4": 5,
}
