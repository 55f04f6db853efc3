#include "nn/transformer.h"

#include "core/ops/pointwise/pointwise.h"

namespace lockstep::nn {

namespace {

MultiheadAttention attention_of(int64_t width, int64_t heads, const TransformerLayerOptions& o) {
  return {width, heads, {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first}};
}

LayerNorm norm_of(int64_t width, const TransformerLayerOptions& o) {
  return LayerNorm(width, {.eps = o.layer_norm_eps, .bias = o.bias});
}

Tensor activated(TransformerActivation activation, const Tensor& x) {
  return activation == TransformerActivation::kReLU ? relu(x) : gelu(x);
}

/// Positions of x, [batch, length, width], [length, batch, width] or [length, width].
int64_t positions_of(const Tensor& x, bool batch_first) {
  return x.size(batch_first && x.dim() == 3 ? 1 : 0);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t width, int64_t heads,
                                                 TransformerLayerOptions o)
    : self_attn(attention_of(width, heads, o)),
      linear1(width, o.dim_feedforward, {.bias = o.bias}),
      dropout(o.dropout),
      linear2(o.dim_feedforward, width, {.bias = o.bias}),
      norm1(norm_of(width, o)),
      norm2(norm_of(width, o)),
      dropout1(o.dropout),
      dropout2(o.dropout),
      options_(o) {
  register_module("self_attn", self_attn);
  register_module("linear1", linear1);
  register_module("dropout", dropout);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
  register_module("dropout1", dropout1);
  register_module("dropout2", dropout2);
}

Tensor TransformerEncoderLayer::feed_forward(const Tensor& x) const {
  const Tensor hidden = activated(options_.activation, linear1.forward(x));
  return dropout2.forward(linear2.forward(dropout.forward(hidden)));
}

Tensor TransformerEncoderLayer::run(const Tensor& x, const AttentionMasks& masks, KvCache* cache,
                                    int64_t layer) const {
  const auto attended = [&](const Tensor& y) {
    return dropout1.forward(
        self_attn.forward(y, y, y, masks, AttentionWeights::kNone, cache, layer).output);
  };
  if (options_.norm_first) {
    const Tensor middle = x + attended(norm1.forward(x));
    return middle + feed_forward(norm2.forward(middle));
  }
  const Tensor middle = norm1.forward(x + attended(x));
  return norm2.forward(middle + feed_forward(middle));
}

Tensor TransformerEncoderLayer::forward(const Tensor& x, const AttentionMasks& masks,
                                        KvCache* cache, int64_t layer) const {
  return run_forward([&](const Tensor& input) { return run(input, masks, cache, layer); }, x);
}

TransformerEncoder::TransformerEncoder(int64_t width, int64_t heads, int64_t count,
                                       const TransformerLayerOptions& options, bool final_norm)
    : batch_first_(options.batch_first) {
  for (int64_t i = 0; i < count; ++i) {
    layers.push_back(TransformerEncoderLayer(width, heads, options));
  }
  register_module("layers", layers);
  if (!final_norm) return;
  norm = std::make_unique<LayerNorm>(norm_of(width, options));
  register_module("norm", *norm);
}

Tensor TransformerEncoder::forward(const Tensor& x, const AttentionMasks& masks,
                                   KvCache* cache) const {
  return run_forward(
      [&](const Tensor& input) {
        Tensor value = input;
        for (size_t i = 0; i < layers.size(); ++i) {
          value = layers.at<TransformerEncoderLayer>(i).forward(value, masks, cache,
                                                                static_cast<int64_t>(i));
        }
        if (cache != nullptr) cache->advance(positions_of(input, batch_first_));
        return norm ? norm->forward(value) : value;
      },
      x);
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t width, int64_t heads,
                                                 TransformerLayerOptions o)
    : self_attn(attention_of(width, heads, o)),
      multihead_attn(attention_of(width, heads, o)),
      linear1(width, o.dim_feedforward, {.bias = o.bias}),
      dropout(o.dropout),
      linear2(o.dim_feedforward, width, {.bias = o.bias}),
      norm1(norm_of(width, o)),
      norm2(norm_of(width, o)),
      norm3(norm_of(width, o)),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      options_(o) {
  register_module("self_attn", self_attn);
  register_module("multihead_attn", multihead_attn);
  register_module("linear1", linear1);
  register_module("dropout", dropout);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
  register_module("norm3", norm3);
  register_module("dropout1", dropout1);
  register_module("dropout2", dropout2);
  register_module("dropout3", dropout3);
}

Tensor TransformerDecoderLayer::feed_forward(const Tensor& x) const {
  const Tensor hidden = activated(options_.activation, linear1.forward(x));
  return dropout3.forward(linear2.forward(dropout.forward(hidden)));
}

Tensor TransformerDecoderLayer::run(const Tensor& x, const Tensor& memory,
                                    const DecoderMasks& masks, KvCache* cache,
                                    int64_t layer) const {
  const auto to_itself = [&](const Tensor& y) {
    return dropout1.forward(
        self_attn.forward(y, y, y, masks.self, AttentionWeights::kNone, cache, layer).output);
  };
  const auto to_memory = [&](const Tensor& y) {
    return dropout2.forward(multihead_attn.forward(y, memory, memory, masks.memory).output);
  };
  if (options_.norm_first) {
    Tensor value = x + to_itself(norm1.forward(x));
    value = value + to_memory(norm2.forward(value));
    return value + feed_forward(norm3.forward(value));
  }
  Tensor value = norm1.forward(x + to_itself(x));
  value = norm2.forward(value + to_memory(value));
  return norm3.forward(value + feed_forward(value));
}

Tensor TransformerDecoderLayer::forward(const Tensor& x, const Tensor& memory,
                                        const DecoderMasks& masks, KvCache* cache,
                                        int64_t layer) const {
  return run_forward(
      [&](const Tensor& input, const Tensor& encoded) {
        return run(input, encoded, masks, cache, layer);
      },
      x, memory);
}

TransformerDecoder::TransformerDecoder(int64_t width, int64_t heads, int64_t count,
                                       const TransformerLayerOptions& options, bool final_norm)
    : batch_first_(options.batch_first) {
  for (int64_t i = 0; i < count; ++i) {
    layers.push_back(TransformerDecoderLayer(width, heads, options));
  }
  register_module("layers", layers);
  if (!final_norm) return;
  norm = std::make_unique<LayerNorm>(norm_of(width, options));
  register_module("norm", *norm);
}

Tensor TransformerDecoder::forward(const Tensor& x, const Tensor& memory, const DecoderMasks& masks,
                                   KvCache* cache) const {
  return run_forward(
      [&](const Tensor& input, const Tensor& encoded) {
        Tensor value = input;
        for (size_t i = 0; i < layers.size(); ++i) {
          value = layers.at<TransformerDecoderLayer>(i).forward(value, encoded, masks, cache,
                                                                static_cast<int64_t>(i));
        }
        if (cache != nullptr) cache->advance(positions_of(input, batch_first_));
        return norm ? norm->forward(value) : value;
      },
      x, memory);
}

}  // namespace lockstep::nn
