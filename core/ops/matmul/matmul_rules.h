#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/matmul/matmul.cc, defined in core/ops/matmul/matmul_rules.cc.

Outputs mm(const Tensor& self, const Tensor& mat2);
Outputs addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
              Scalar alpha);
Outputs bmm(const Tensor& self, const Tensor& mat2);
Outputs baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                Scalar alpha);

}  // namespace lockstep::rules
