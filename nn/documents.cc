#include "nn/documents.h"

#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

void check_documents(IntList sizes, int64_t batch, int64_t length) {
  int64_t end = 0;
  for (const int64_t size : sizes) {
    const int64_t left = length - (length > 0 ? end % length : 0);
    LS_CHECK(size > 0 && size <= left, ShapeError,
             "[documents] a document of {} tokens begins at token {} of a row of {}: expected 1 to "
             "{} tokens.",
             size, length - left, length, left);
    end += size;
  }
  LS_CHECK(end == batch * length, ShapeError,
           "[documents] the documents have {} tokens: expected those of {} rows of {}, {}.", end,
           batch, length, batch * length);
}

Tensor positions_in_documents(IntList sizes, int64_t batch, int64_t length, Device device) {
  std::vector<int64_t> positions;
  for (const int64_t size : sizes) {
    for (int64_t i = 0; i < size; ++i) positions.push_back(i);
  }
  return tensor_from(positions, {batch, length}).to(device);
}

Tensor by_documents(const Tensor& x, IntList sizes,
                    const std::function<Tensor(const Tensor& document)>& attend) {
  const int64_t batch = x.size(0), length = x.size(1);
  std::vector<Tensor> results;
  for (const Tensor& document : split_with_sizes(x.flatten(0, 1), sizes, 0)) {
    results.push_back(attend(document.unsqueeze(0)).squeeze(0));
  }
  return unflatten(cat(results, 0), 0, {batch, length});
}

}  // namespace lockstep::nn
