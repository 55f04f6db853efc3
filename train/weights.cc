#include "train/weights.h"

#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "nn/models/hugging_face.h"
#include "train/weights/file_digests.h"
#include "train/weights/read_errors.h"
#include "train/weights/tensor_file.h"
#include "train/weights/weight_files.h"

namespace lockstep::train {

namespace {

using Stored = std::vector<nn::StoredParameter>;
using EntriesByName = std::multimap<std::string, const WeightFiles::Entries::value_type*>;

/// The prefix of all names except the output head's in files of a whole model; files of only the
/// body omit it.
std::string_view body_prefix(const Stored& stored) {
  const bool is_llama = std::ranges::any_of(stored, [](const nn::StoredParameter& parameter) {
    return parameter.name.starts_with("model.");
  });
  return is_llama ? "model." : "transformer.";
}

std::string without(std::string_view prefix, const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

/// Whether `name` is a buffer found in old files, which models compute instead.
bool is_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

bool is_token_embedding(const std::string& name) {
  return name == "wte.weight" || name == "embed_tokens.weight";
}

bool same_content(const TensorRecord& a, const TensorRecord& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

std::vector<int64_t> stored_shape(const nn::StoredParameter& parameter) {
  const IntList sizes = parameter.tensor.sizes();
  std::vector<int64_t> shape(sizes.begin(), sizes.end());
  if (parameter.transposed) std::swap(shape[0], shape[1]);
  return shape;
}

/// Whether `from` can be loaded as `to`: the same type, or both floating.
bool converts(DType from, DType to) { return from == to || (is_floating(from) && is_floating(to)); }

/// Finds the tensor of every parameter and collects all mismatches.
class Matching {
 public:
  Matching(const WeightFiles& files, const Stored& stored) : prefix_(body_prefix(stored)) {
    for (const auto& entry : files.tensors()) left_.emplace(without(prefix_, entry.first), &entry);
    for (const nn::StoredParameter& parameter : stored) match(parameter);
    for (const auto& [name, entry] : left_) explain(name, *entry);
  }

  /// Tensors in the order of the parameters; complete only if problems() is empty.
  const std::vector<const TensorRecord*>& tensors() const { return tensors_; }
  const std::string& problems() const { return problems_; }

 private:
  void match(const nn::StoredParameter& parameter) {
    const std::string name = without(prefix_, parameter.name);
    const auto [first, last] = left_.equal_range(name);
    if (first == last) {
      problems_ += fmt::format("\n  missing {}", parameter.name);
      return;
    }
    const auto& [full_name, entry] = *first->second;
    if (std::next(first) != last) {
      problems_ += fmt::format("\n  ambiguous {}: there is {} too", full_name,
                               std::next(first)->second->first);
    }
    const std::vector<int64_t> shape = stored_shape(parameter);
    const DType dtype = parameter.tensor.dtype();
    if (entry.tensor.shape != shape || !converts(entry.tensor.dtype, dtype)) {
      problems_ +=
          fmt::format("\n  {} in {}: expected {}{}, got {}{}", full_name, entry.file,
                      to_string(dtype), to_string(IntList(shape)), to_string(entry.tensor.dtype),
                      to_string(IntList(entry.tensor.shape)));
    }
    tensors_.push_back(&entry.tensor);
    if (is_token_embedding(name)) embedding_ = &*first->second;
    left_.erase(first, last);
  }

  void explain(const std::string& name, const WeightFiles::Entries::value_type& entry) {
    if (is_buffer(name)) return;
    if (name == "lm_head.weight" && embedding_ != nullptr) {
      if (same_content(entry.second.tensor, embedding_->second.tensor)) return;
      problems_ += fmt::format("\n  {} in {}: differs from {}, which the model uses in its place",
                               entry.first, entry.second.file, embedding_->first);
      return;
    }
    problems_ += fmt::format("\n  unexpected {} in {}", entry.first, entry.second.file);
  }

  std::string_view prefix_;
  EntriesByName left_;  ///< entries not matched yet, by name without the prefix
  std::vector<const TensorRecord*> tensors_;
  const WeightFiles::Entries::value_type* embedding_ = nullptr;
  std::string problems_;
};

std::string read_text(const std::filesystem::path& path) {
  try {
    return read_whole_file(path, kMostJsonBytes);
  } catch (const FileError& error) {
    throw CheckpointError(
        fmt::format("[weights] cannot read {}: {}. A model's folder holds it beside the weights; a "
                    "run writes it at its end.",
                    path.string(), error.reason()));
  }
}

void load(nn::Module& model, const WeightFiles& files, const std::filesystem::path& path) {
  const NoGradGuard no_grad;
  const Stored stored = model.stored_parameters();
  const Matching matching(files, stored);
  LS_CHECK(matching.problems().empty(), CheckpointError, "[weights] {} does not fit the model:{}",
           path.string(), matching.problems());
  for (size_t i = 0; i < stored.size(); ++i) {
    const TensorRecord& record = *matching.tensors()[i];
    const Tensor tensor = empty_tensor(record.shape, record.dtype);
    std::ranges::copy(record.bytes, static_cast<std::byte*>(tensor.data()));
    stored[i].tensor.copy_(stored[i].transposed ? tensor.t() : tensor);
  }
}

nn::WeightsSize size_of_weights(const WeightFiles& files) {
  nn::WeightsSize size;
  for (const auto& [name, entry] : files.tensors()) {
    ++size.tensors;
    size.elements += static_cast<int64_t>(entry.tensor.bytes.size() / size_of(entry.tensor.dtype));
  }
  return size;
}

/// Makes the model that config.json describes. Its errors name the file, of which nn knows the text
/// alone.
std::unique_ptr<nn::LanguageModel> model_of(const std::filesystem::path& path,
                                            const std::string& text, nn::WeightsSize weights) {
  try {
    return nn::model_from_hugging_face(text, weights);
  } catch (const ConfigError& error) {
    constexpr std::string_view kPrefix = "[config.json] ";
    std::string_view what = error.what();
    if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
    throw ConfigError(fmt::format("[config.json] {}: {}", path.string(), what));
  }
}

}  // namespace

FileDigest save_weights(const nn::Module& model, const std::filesystem::path& path,
                        const std::function<Tensor(size_t)>& values) {
  return save_tensors(path, model.stored_parameters(), {}, values);
}

void load_weights(nn::Module& model, const std::filesystem::path& path) {
  load(model, WeightFiles(path), path);
}

std::unique_ptr<nn::LanguageModel> load_model(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string config = read_text(path);
  check_file(path);
  const WeightFiles files(folder);
  std::unique_ptr<nn::LanguageModel> model = model_of(path, config, size_of_weights(files));
  load(*model, files, folder);
  model->eval();
  return model;
}

}  // namespace lockstep::train
