#pragma once

#include <vector>

#include "nn/block_model.h"

namespace lockstep::nn {

/// A model that assigns each sample one of a fixed number of classes.
class Classifier : public BlockModel {
 public:
  /// Logits [batch, classes] of `inputs` [batch, input_shape()...]. Throws ShapeError for other
  /// shapes.
  virtual Tensor forward(const Tensor& inputs) = 0;

  /// Sizes of one sample.
  virtual std::vector<int64_t> input_shape() const = 0;
  virtual int64_t classes() const = 0;
  /// FLOPs of the matrix products and convolutions of a forward pass, per sample. A training step
  /// takes three times as many.
  virtual double forward_flops() const = 0;
};

/// Number of elements of one sample.
int64_t input_size(const Classifier& model);

/// Logits of `samples`, [batch, input_size()] or already of the model's shape.
Tensor logits_of(Classifier& model, const Tensor& samples);

/// Cross-entropy of logits_of(model, samples) and `labels`, int64 [batch] of classes, summed over
/// the samples with a label other than -100. A 0-d tensor.
Tensor sum_of_losses(Classifier& model, const Tensor& samples, const Tensor& labels);

}  // namespace lockstep::nn
