#include "core/ops/factory/factory.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

Tensors two(int seed, int64_t rows = 3) { return {floats({rows, 5}, seed), floats({7}, seed + 1)}; }
Tensors two_positive(int64_t rows = 3) { return {positives({rows, 5}), positives({7}, 2)}; }
Tensors two_halves() { return {zeros({3, 5}, DType::kBF16), zeros({7}, DType::kBF16)}; }
Tensor step(int64_t number) { return full({}, number, DType::kF64); }

}  // namespace

void add_optimizer_samples(SampleTable& table) {
  table["_fused_adamw_"] = {
      .calls = {call("first step", two(1), two(3), two(5), two_positive(), 0.1, 0.9, 0.99, 0.01,
                     1e-8, step(1)),
                call("clipped", two(1), two(3), two(5), two_positive(), 0.1, 0.9, 0.99, 0.01, 1e-8,
                     step(7), 0.5, Dims{1, 0}),
                call("told by the device", two(1), two(3), two(5), two_positive(), 0.1, 0.9, 0.99,
                     0.01, 1e-8, step(2), 0.5, Dims{}, full({}, 0.3, DType::kF64),
                     zeros({}, DType::kF32)),
                call("left out", two(1), two(3), two(5), two_positive(), 0.1, 0.9, 0.99, 0.01, 1e-8,
                     step(0), 1.0, Dims{}, full({}, 0.3, DType::kF64), ones({}, DType::kF32)),
                call("with casts", two(1), two(3), two(5), two_positive(), 0.1, 0.9,
                     0.99, 0.01, 1e-8, step(2), 0.5, Dims{}, full({}, 0.3, DType::kF64),
                     zeros({}, DType::kF32), two_halves(), full({}, 0.7, DType::kF64))},
      .large = {call("large", two(1, 13000), two(3, 13000), two(5, 13000), two_positive(13000), 0.1,
                     0.9, 0.99, 0.01, 1e-8, step(3))},
      .reads_strides = true};
  table["_fused_sgd_"] = {
      .calls = {call("momentum", two(1), two(3), two(5), 0.1, 0.9, false, 0.01),
                call("nesterov", two(1), two(3), two(5), 0.1, 0.9, true, 0.01, 0.5, Dims{1, 0}),
                call("plain", two(1), two(3), Tensors{}, 0.1, 0.0, false, 0.0),
                call("told by the device", two(1), two(3), two(5), 0.1, 0.9, false, 0.01, 0.5,
                     Dims{}, full({}, 0.3, DType::kF64), zeros({}, DType::kF32)),
                call("with casts", two(1), two(3), two(5), 0.1, 0.9, false, 0.01, 0.5, Dims{},
                     full({}, 0.3, DType::kF64), zeros({}, DType::kF32), two_halves(),
                     full({}, 0.7, DType::kF64))},
      .large = {call("large", two(1, 13000), two(3, 13000), two(5, 13000), 0.1, 0.9, false, 0.01)},
      .reads_strides = true};
  table["_fused_lion_"] = {
      .calls = {call("decayed", two(1), two(3), two(5), 0.1, 0.9, 0.99, 0.01),
                call("clipped", two(1), two(3), two(5), 0.1, 0.9, 0.99, 0.01, 0.5, Dims{1, 0}),
                call("told by the device", two(1), two(3), two(5), 0.1, 0.9, 0.99, 0.01, 0.5,
                     Dims{}, full({}, 0.3, DType::kF64), zeros({}, DType::kF32)),
                call("left out", two(1), two(3), two(5), 0.1, 0.9, 0.99, 0.01, 0.5, Dims{},
                     full({}, 0.3, DType::kF64), ones({}, DType::kF32)),
                call("with casts", two(1), two(3), two(5), 0.1, 0.9, 0.99, 0.01, 0.5, Dims{},
                     full({}, 0.3, DType::kF64), zeros({}, DType::kF32), two_halves(),
                     full({}, 0.7, DType::kF64))},
      .large = {call("large", two(1, 13000), two(3, 13000), two(5, 13000), 0.1, 0.9, 0.99, 0.01)},
      .reads_strides = true};
  table["_block_square_sums"] = {
      .calls = {call("one block each", two(1)), call("no elements", Tensors{floats({0})}),
                call("transposed", Tensors{with_gaps(floats({4, 3})), floats({2})})},
      .large = {call("large", Tensors{floats({67, 1031}), floats({7}), floats({9001})})}};
  table["_ordered_sum"] = {
      .calls = {call("matrix", floats({3, 5})), call("nothing", floats({0})),
                call("0-d", floats({})), call("transposed", with_gaps(floats({4, 3})))},
      .large = {call("large", floats({67, 1031}))}};
  table["_fused_adamw_"].fixed_dtype = {"step", "grad_factor", "found_inf", "casts", "lr_factor"};
  table["_fused_sgd_"].fixed_dtype = {"grad_factor", "found_inf", "casts", "lr_factor"};
  table["_fused_lion_"].fixed_dtype = {"grad_factor", "found_inf", "casts", "lr_factor"};
  for (const char* op :
       {"_fused_adamw_", "_fused_sgd_", "_fused_lion_", "_block_square_sums", "_ordered_sum"}) {
    for (const DType half : {DType::kF16, DType::kBF16}) {
      table[op].refuses[half] = "parameters and gradients are kept in float32 or float64";
    }
  }
}

}  // namespace lockstep
