#pragma once

#include <cstdint>
#include <memory>

#include "nn/containers.h"
#include "nn/dropout.h"
#include "nn/layers.h"
#include "nn/multihead_attention.h"

namespace lockstep::nn {

/// Function between the two products of a transformer layer's feed-forward part.
enum class TransformerActivation : uint8_t { kReLU, kGELU };

/// Options of transformer layers, with PyTorch's defaults.
struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::kReLU;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  ///< inputs [batch, length, width] instead of [length, batch, width]
  bool norm_first = false;   ///< norms before attention and feed-forward part instead of after
  bool bias = true;          ///< of products and norms
};

/// Self-attention and a feed-forward part, each with a residual and a norm (Vaswani et al. 2017).
/// Parameters are named as PyTorch's.
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t width, int64_t heads, TransformerLayerOptions options = {});
  /// x [length, batch, width], [batch, length, width] with batch_first, or [length, width]. `cache`
  /// and `layer` are those of MultiheadAttention.
  Tensor forward(const Tensor& x, const AttentionMasks& masks = {}, KvCache* cache = nullptr,
                 int64_t layer = 0) const;

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;
  Dropout dropout1;
  Dropout dropout2;

 private:
  Tensor run(const Tensor& x, const AttentionMasks& masks, KvCache* cache, int64_t layer) const;
  Tensor feed_forward(const Tensor& x) const;

  TransformerLayerOptions options_;
};

/// Encoder layers one after the other, and a norm if `final_norm`. A causal one with a cache is a
/// decoder of text.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(int64_t width, int64_t heads, int64_t layers,
                     const TransformerLayerOptions& options = {}, bool final_norm = false);
  /// As the layers' forward. Advances the cache, which has as many layers.
  Tensor forward(const Tensor& x, const AttentionMasks& masks = {}, KvCache* cache = nullptr) const;

  ModuleList layers;                ///< of TransformerEncoderLayer
  std::unique_ptr<LayerNorm> norm;  ///< null without `final_norm`

 private:
  bool batch_first_;
};

/// Masks of a decoder: of its attention to itself, and to the encoder's result.
struct DecoderMasks {
  AttentionMasks self = {};
  AttentionMasks memory = {};
};

/// Self-attention, attention to an encoder's result and a feed-forward part, each with a residual
/// and a norm.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t width, int64_t heads, TransformerLayerOptions options = {});
  /// x and memory of the shapes that the encoder's layers take. `cache` is of self-attention.
  Tensor forward(const Tensor& x, const Tensor& memory, const DecoderMasks& masks = {},
                 KvCache* cache = nullptr, int64_t layer = 0) const;

  MultiheadAttention self_attn;
  MultiheadAttention multihead_attn;  ///< to the encoder's result
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;
  LayerNorm norm3;
  Dropout dropout1;
  Dropout dropout2;
  Dropout dropout3;

 private:
  Tensor run(const Tensor& x, const Tensor& memory, const DecoderMasks& masks, KvCache* cache,
             int64_t layer) const;
  Tensor feed_forward(const Tensor& x) const;

  TransformerLayerOptions options_;
};

/// Decoder layers one after the other, and a norm if `final_norm`.
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(int64_t width, int64_t heads, int64_t layers,
                     const TransformerLayerOptions& options = {}, bool final_norm = false);
  /// As the layers' forward. Advances the cache, which has as many layers.
  Tensor forward(const Tensor& x, const Tensor& memory, const DecoderMasks& masks = {},
                 KvCache* cache = nullptr) const;

  ModuleList layers;                ///< of TransformerDecoderLayer
  std::unique_ptr<LayerNorm> norm;  ///< null without `final_norm`

 private:
  bool batch_first_;
};

}  // namespace lockstep::nn
