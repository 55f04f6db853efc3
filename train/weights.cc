#include "train/weights.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "autograd/grad_mode.h"
#include "core/check.h"
#include "core/ops/copy.h"
#include "core/ops/view.h"
#include "train/safetensors.h"

namespace lockstep::train {

namespace {

constexpr std::string_view kPrefix = "transformer.";

std::vector<int64_t> stored_shape(const nn::StoredParameter& parameter) {
  const IntList sizes = parameter.tensor.sizes();
  std::vector<int64_t> shape(sizes.begin(), sizes.end());
  if (parameter.transposed) std::swap(shape[0], shape[1]);
  return shape;
}

const TensorRecord* find(const SafetensorsFile& file, const std::string& name) {
  const TensorRecord* record = file.find(name);
  return record != nullptr ? record : file.find(std::string(kPrefix) + name);
}

}  // namespace

void save_weights(const nn::LanguageModel& model, const std::filesystem::path& path) {
  const NoGradGuard no_grad;
  std::vector<Tensor> kept;  // transposed copies must outlive the records
  std::vector<TensorRecord> records;
  for (const nn::StoredParameter& parameter : model.stored_parameters()) {
    const Tensor tensor =
        (parameter.transposed ? parameter.tensor.t() : parameter.tensor).contiguous();
    kept.push_back(tensor);
    TensorRecord record;
    record.name = parameter.name;
    record.dtype = tensor.dtype();
    record.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
    record.bytes = {static_cast<const std::byte*>(tensor.data()), tensor.nbytes()};
    records.push_back(std::move(record));
  }
  write_safetensors(path, records);
}

void load_weights(nn::LanguageModel& model, const std::filesystem::path& path) {
  const NoGradGuard no_grad;
  const SafetensorsFile file(path);
  std::string problems;
  std::set<std::string> expected;
  for (const nn::StoredParameter& parameter : model.stored_parameters()) {
    const TensorRecord* record = find(file, parameter.name);
    if (record == nullptr) {
      problems += fmt::format("\n  missing {}", parameter.name);
      continue;
    }
    expected.insert(record->name);
    const std::vector<int64_t> shape = stored_shape(parameter);
    if (record->shape != shape || record->dtype != parameter.tensor.dtype()) {
      problems += fmt::format("\n  {}: expected {}{}, got {}{}", record->name,
                              to_string(parameter.tensor.dtype()), to_string(IntList(shape)),
                              to_string(record->dtype), to_string(IntList(record->shape)));
      continue;
    }
    const Tensor stored = empty_tensor(shape, record->dtype);
    std::memcpy(stored.data(), record->bytes.data(), record->bytes.size());
    parameter.tensor.copy_(parameter.transposed ? stored.t() : stored);
  }
  for (const TensorRecord& record : file.tensors()) {
    // Old GPT-2 files carry the causal mask as a buffer.
    const bool mask =
        record.name.ends_with(".attn.bias") || record.name.ends_with(".attn.masked_bias");
    if (!expected.contains(record.name) && !mask) {
      problems += fmt::format("\n  unexpected {}", record.name);
    }
  }
  LS_CHECK(problems.empty(), CheckpointError, "[weights] {} does not fit the model:{}",
           path.string(), problems);
}

std::unique_ptr<nn::LanguageModel> load_model(const RunDirectory& run) {
  std::ifstream in(run.model_config());
  LS_CHECK(in.good(), CheckpointError, "[weights] cannot read {}. Has the run finished?",
           run.model_config().string());
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::unique_ptr<nn::LanguageModel> model = nn::model_from_hugging_face(text);
  load_weights(*model, run.weights());
  model->eval();
  return model;
}

}  // namespace lockstep::train
