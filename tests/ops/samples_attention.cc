#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_of_qkv.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

Tensor query(IntList sizes) { return floats(sizes, 1); }
Tensor key(IntList sizes) { return floats(sizes, 2); }
Tensor value(IntList sizes) { return floats(sizes, 3); }

// The backward passes take results of the forward pass, which agree with each other.
Sample backward_call(std::string what, const Tensor& query, const Tensor& key, const Tensor& value,
                     bool is_causal) {
  const auto [out, logsumexp] =
      _scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal);
  return call(std::move(what), floats(query.sizes(), 4), query, key, value, out, logsumexp, 0.0,
              is_causal);
}
Sample qkv_backward_call(std::string what, const Tensor& qkv, int64_t heads, int64_t key_heads,
                         bool is_causal) {
  const auto [out, logsumexp] = _flash_attention_of_qkv(qkv, heads, key_heads, is_causal);
  return call(std::move(what), floats(out.sizes(), 4), qkv, out, logsumexp, heads, key_heads,
              is_causal);
}

void add_qkv_samples(SampleTable& table, const std::string& single) {
  const std::vector<Sample> calls = {
      call("heads", floats({1, 3, 12}), int64_t{2}, int64_t{2}),
      call("causal, shared heads", floats({2, 3, 8}), int64_t{2}, int64_t{1}, true)};
  table["attention_of_qkv"] = {.calls = calls};
  table["_flash_attention_of_qkv"] = {
      .calls = calls,
      .large = {call("large", floats({2, 130, 5 * 32}), int64_t{3}, int64_t{1}, true)},
      .no_gradcheck = single};
  table["_flash_attention_of_qkv_backward"] = {
      .calls = {qkv_backward_call("heads", floats({1, 3, 12}), 2, 2, false),
                qkv_backward_call("causal, shared heads", floats({2, 3, 8}), 2, 1, true)},
      .large = {qkv_backward_call("large", floats({2, 130, 5 * 32}), 3, 1, true)},
      .no_gradcheck = single};
}

}  // namespace

void add_attention_samples(SampleTable& table) {
  table["scaled_dot_product_attention"] = {
      .calls = {call("heads", query({1, 2, 3, 4}), key({1, 2, 5, 4}), value({1, 2, 5, 4})),
                call("causal", query({1, 2, 4, 4}), key({1, 2, 4, 4}), value({1, 2, 4, 4}),
                     std::nullopt, 0.0, true),
                call("bool mask", query({1, 1, 3, 4}), key({1, 1, 5, 4}), value({1, 1, 5, 4}),
                     flags({3, 5})),
                call("added mask", query({1, 1, 3, 4}), key({1, 1, 5, 4}), value({1, 1, 5, 4}),
                     floats({3, 5}, 4)),
                call("three dimensions", query({2, 3, 4}), key({2, 5, 4}), value({2, 5, 4})),
                call("grouped heads", query({1, 4, 2, 4}), key({1, 2, 3, 4}), value({1, 2, 3, 4}))
                    .with("enable_gqa", true),
                call("scale", query({1, 1, 3, 4}), key({1, 1, 3, 4}), value({1, 1, 3, 4}))
                    .with("scale", 0.7)}};
  table["_scaled_dot_product_attention_math"] = {
      .calls = {call("heads", query({1, 2, 3, 4}), key({1, 2, 5, 4}), value({1, 2, 5, 4})),
                call("causal", query({1, 2, 4, 4}), key({1, 2, 4, 4}), value({1, 2, 4, 4}),
                     std::nullopt, 0.0, true)}};
  const std::string single =
      "the kernel computes in float32 only; fused_test.cc compares it with the math form";
  table["_scaled_dot_product_flash_attention_for_cpu"] = {
      .calls = {call("heads", query({1, 2, 3, 4}), key({1, 2, 5, 4}), value({1, 2, 5, 4})),
                call("causal", query({1, 2, 4, 4}), key({1, 2, 4, 4}), value({1, 2, 4, 4}), 0.0,
                     true)},
      .large = {call("large", query({2, 3, 130, 32}), key({2, 3, 130, 32}), value({2, 3, 130, 32}),
                     0.0, true)},
      .no_gradcheck = single};
  table["_scaled_dot_product_flash_attention_for_cpu_backward"] = {
      .calls = {backward_call("heads", query({1, 2, 3, 4}), key({1, 2, 5, 4}), value({1, 2, 5, 4}),
                              false)},
      .large = {backward_call("large", query({2, 3, 130, 32}), key({2, 3, 130, 32}),
                              value({2, 3, 130, 32}), true)},
      .no_gradcheck = single};
  const Tensor angles = floats({5, 3}, 6);
  table["rotary_embedding"] = {
      .calls = {call("heads", query({2, 2, 5, 6}), cos(angles), sin(angles)),
                call("inverse", query({1, 2, 5, 6}), cos(angles), sin(angles), true),
                call("three dimensions", query({2, 5, 6}), cos(angles), sin(angles)),
                call("matrix", query({5, 6}), cos(angles), sin(angles)),
                call("empty", query({0, 2, 5, 6}), cos(angles), sin(angles))},
      .large = {call("large", query({2, 3, 130, 32}), floats({130, 16}, 7), floats({130, 16}, 8))},
      .statistics = {"cosine", "sine"}};
  table["rotary_of_qkv"] = {
      .calls = {call("heads", floats({1, 5, 18}), cos(angles), sin(angles), int64_t{1}, int64_t{1}),
                call("shared heads, inverse", floats({2, 5, 24}), cos(angles), sin(angles),
                     int64_t{2}, int64_t{1}, true),
                call("empty", floats({0, 5, 24}), cos(angles), sin(angles), int64_t{2},
                     int64_t{1})},
      .large = {call("large", floats({2, 130, 5 * 32}), floats({130, 16}, 7), floats({130, 16}, 8),
                     int64_t{3}, int64_t{1})},
      .statistics = {"cosine", "sine"}};
  add_qkv_samples(table, single);
  for (const char* op : {"_flash_attention_of_qkv", "_flash_attention_of_qkv_backward",
                         "_scaled_dot_product_flash_attention_for_cpu",
                         "_scaled_dot_product_flash_attention_for_cpu_backward"}) {
    table[op].refuses[DType::kF64] = "the calling operator takes the math form for it";
    table[op].statistics = {"logsumexp"};
  }
}

}  // namespace lockstep
