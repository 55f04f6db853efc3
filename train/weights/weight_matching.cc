#include "train/weights/weight_matching.h"

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/ops/view/view.h"
#include "nn/adapters/lora.h"

namespace lockstep::train {

namespace {

using Stored = std::vector<nn::StoredParameter>;
using Entries = WeightFiles::Entries;
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
  Matching(const Entries& entries, const Stored& stored, const SameBytes& same_bytes)
      : same_bytes_(same_bytes), prefix_(body_prefix(stored)) {
    for (const auto& entry : entries) {
      left_.emplace_hint(left_.end(), without(prefix_, entry.first), &entry);
      has_adapters_ = has_adapters_ || nn::is_lora_parameter(entry.first);
    }
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
    if (first == last && !has_adapters_ && nn::is_lora_parameter(name)) {
      tensors_.push_back(nullptr);
      return;
    }
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
      if (same_content(entry.second, embedding_->second)) return;
      problems_ += fmt::format("\n  {} in {}: differs from {}, which the model uses in its place",
                               entry.first, entry.second.file, embedding_->first);
      return;
    }
    problems_ += fmt::format("\n  unexpected {} in {}", entry.first, entry.second.file);
  }

  bool same_content(const WeightEntry& a, const WeightEntry& b) const {
    return a.tensor.dtype == b.tensor.dtype && a.tensor.shape == b.tensor.shape &&
           same_bytes_(a, b);
  }

  const SameBytes& same_bytes_;
  std::string_view prefix_;
  bool has_adapters_ = false;  ///< the files
  EntriesByName left_;         ///< entries not matched yet, by name without the prefix
  std::vector<const TensorRecord*> tensors_;
  const WeightFiles::Entries::value_type* embedding_ = nullptr;
  std::string problems_;
};

}  // namespace

std::vector<const TensorRecord*> match_weights(const Entries& entries, const Stored& stored,
                                               const std::filesystem::path& path,
                                               const SameBytes& same_bytes) {
  const Matching matching(entries, stored, same_bytes);
  LS_CHECK(matching.problems().empty(), CheckpointError, "[weights] {} does not fit the model:{}",
           path.string(), matching.problems());
  return matching.tensors();
}

}  // namespace lockstep::train
