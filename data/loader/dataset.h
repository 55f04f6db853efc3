#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::data {

/// One sample: tensors by place, an image and its class, say. All samples of a data set have as
/// many, and those of one place have one shape and dtype, unless a loader's `collate` joins others.
using Sample = std::vector<Tensor>;

/// Samples that are read by number. A loader's workers call `get` on several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// Sample `index`, from 0 to size() - 1.
  virtual Sample get(int64_t index) const = 0;
};

/// The rows of tensors, which all have as many: sample i is {tensors[0][i], tensors[1][i], ...}.
class TensorDataset final : public Dataset {
 public:
  /// Throws ShapeError for no tensor, a 0-d tensor, and first dimensions that differ.
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override { return tensors_.front().size(0); }
  /// Views of the tensors.
  Sample get(int64_t index) const override;

 private:
  std::vector<Tensor> tensors_;
};

/// Samples in the order in which they come: of a file that is read once through, of a socket. Used
/// by one thread at a time.
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  /// The next sample; nothing at the end.
  virtual std::optional<Sample> next() = 0;
  /// Leaves out that many samples, or all that are left. The default reads them.
  virtual void skip(int64_t samples);
};

/// Samples that can only be read one after the other.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  /// The samples of an epoch, from the first. For runs that can be repeated and resumed they are a
  /// pure function of `epoch`.
  virtual std::unique_ptr<SampleStream> open(int64_t epoch) const = 0;
};

}  // namespace lockstep::data
