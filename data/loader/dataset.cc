#include "data/loader/dataset.h"

#include <utility>

#include "core/base/check.h"

namespace lockstep::data {

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  LS_CHECK(!tensors_.empty(), ShapeError,
           "[TensorDataset] expected at least one tensor, got none.");
  for (const Tensor& tensor : tensors_) {
    LS_CHECK(tensor.dim() > 0, ShapeError, "[TensorDataset] a 0-d tensor has no rows.");
    LS_CHECK(tensor.size(0) == tensors_.front().size(0), ShapeError,
             "[TensorDataset] the tensors differ in their number of rows: expected {}, got {}.",
             tensors_.front().size(0), tensor.size(0));
  }
}

Sample TensorDataset::get(int64_t index) const {
  Sample sample;
  for (const Tensor& tensor : tensors_) sample.push_back(tensor[index]);
  return sample;
}

void SampleStream::skip(int64_t samples) {
  for (int64_t i = 0; i < samples; ++i) {
    if (!next()) return;
  }
}

}  // namespace lockstep::data
