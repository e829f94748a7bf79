# problem: strides
# loses: strides-plain, strides-turned
# reason: no finite number for 'A · B, warp of 32 × 1'

prediction = {
    "A · B, warp of 32 × 1": "5",
    "A · B, warp of 16 × 2": "4",
    "A · B, warp of 4 × 8": "9",
    "Aᵀ · B, warp of 32 × 1": "5",
    "Aᵀ · B, warp of 8 × 4": "2",
    "A · Bᵀ, warp of 8 × 4": "12",
}
