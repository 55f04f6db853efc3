#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/tensor.h"

/// Maximal update parametrization (muP; Yang et al. 2022, "Tensor Programs V"): a transformer's
/// initialisation, multipliers and learning rates follow its width, so that settings that are best
/// for a narrow model are best for a wide one. This file is the rule; docs/mup.md explains it.
namespace lockstep::nn {

/// How the shape of a parameter follows the width of its model.
enum class WidthRole : uint8_t {
  kMatrix,  ///< reads and writes a width: the matrices of the blocks
  kVector,  ///< at most one dimension is a width: embeddings, classifier, norms, biases
};

/// Update rules that muP scales alike.
enum class UpdateKind : uint8_t {
  kElementwise,  ///< a step moves every element by about the rate: AdamW, Lion
  kGradient,     ///< a step is the rate times the gradient: SGD
  kOrthogonal,   ///< a step has singular values of about the rate: Muon, of matrices
};

/// Factors of the learning rate and of the weight decay. Their product is 1: a decay is multiplied
/// by the rate, and what a step takes from a weight shall not follow the width.
struct UpdateFactors {
  double rate = 1;
  double decay = 1;
};

/// What muP changes of a model, relative to a base model for which it changes nothing. The default
/// is that base model: all factors are 1, and nothing is computed differently.
struct Mup {
  double width = 1;              ///< width of the model, as a multiple of the base model's
  double head_width = 1;         ///< elements of an attention head, likewise
  double input_multiplier = 1;   ///< of the embedded tokens
  double output_multiplier = 1;  ///< of the logits

  /// Factor of the standard deviation with which a parameter begins: 1 / sqrt(width) for a matrix.
  double deviation_of(WidthRole role) const;
  UpdateFactors update_of(WidthRole role, UpdateKind kind) const;

  /// Factor of the attention's scores beside 1 / sqrt(d) for heads of d elements. Together they are
  /// sqrt(d of the base model) / d: trained queries and keys are correlated, so that their products
  /// grow as d.
  double attention_factor() const;
  /// The `scale` of scaled_dot_product_attention; nothing, its default, where the factor is 1.
  std::optional<double> attention_scale(int64_t head_elements) const;
  /// Factor of what the classifier reads: output_multiplier / width.
  double features_factor() const { return output_multiplier / width; }

  /// Whether both have the same multipliers in the forward pass.
  bool computes_as(const Mup& other) const {
    return attention_factor() == other.attention_factor() &&
           features_factor() == other.features_factor() &&
           input_multiplier == other.input_multiplier;
  }
  /// Whether the forward pass is that of a model without muP.
  bool is_plain() const { return computes_as({}); }
};

/// x * factor; x itself where the factor is 1.
Tensor multiplied(const Tensor& x, double factor);

}  // namespace lockstep::nn
