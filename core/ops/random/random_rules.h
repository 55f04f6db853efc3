#pragma once

#include "core/tensor/outputs.h"

namespace lockstep {

class Generator;

namespace rules {

// Shape rules of core/ops/random/random.cc, defined in core/ops/random/random_rules.cc.

Outputs uniform(const Tensor& self, double from, double to, Generator* generator);
Outputs normal(const Tensor& self, double mean, double std, Generator* generator);
Outputs random_from(const Tensor& self, int64_t from, std::optional<int64_t> to,
                    Generator* generator);
Outputs bernoulli(const Tensor& self, double p, Generator* generator);
Outputs randperm(int64_t n, Generator* generator, std::optional<DType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin_memory);
Outputs native_dropout(const Tensor& input, double p, std::optional<bool> train);
Outputs native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale);

}  // namespace rules
}  // namespace lockstep
