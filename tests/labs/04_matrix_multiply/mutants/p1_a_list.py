# problem: strides
# loses: strides-plain, strides-turned
# reason: prediction is not a dict

prediction = [5, 4, 9, 5, 2, 12]
