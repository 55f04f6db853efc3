#pragma once

// What the text of a GPU's row kernel begins with (kernels/cuda/row_source.h), as loop_kernel.cuh
// is of a loop kernel's.

#include "kernels/cuda/row_steps.cuh"
#include "kernels/pointwise/loop_kernel.cuh"
