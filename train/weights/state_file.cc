#include "train/weights/state_file.h"

#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

namespace {

Tensor tensor_of_record(const TensorRecord& record) {
  const Tensor tensor = empty(record.shape, {record.dtype, kCPU});
  if (!record.bytes.empty()) std::memcpy(tensor.data(), record.bytes.data(), record.bytes.size());
  return tensor;
}

}  // namespace

void save(const std::string& path, const nn::StateDict& tensors) {
  std::vector<nn::StoredParameter> stored;
  for (const auto& [name, tensor] : tensors) stored.push_back({name, tensor});
  save_tensors(path, stored);
}

nn::StateDict load(const std::string& path) {
  const SafetensorsFile file(path);
  nn::StateDict tensors;
  for (const TensorRecord& record : file.tensors()) {
    tensors.add(record.name, tensor_of_record(record));
  }
  // The other names of tensors that have several; further metadata maps no name to a tensor.
  for (const auto& [name, first] : file.metadata()) {
    const Tensor* const shared = tensors.find(first);
    if (shared != nullptr && tensors.find(name) == nullptr) tensors.add(name, *shared);
  }
  return tensors;
}

}  // namespace lockstep::train
