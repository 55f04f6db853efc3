#include "train/weights/hugging_face_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/parse_json.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "data/tokenizers/tokenizer.h"
#include "train/weights/multiplier_files.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// A folder that appears atomically: it is filled under a temporary name beside its destination,
/// then renamed.
class AtomicFolder {
 public:
  explicit AtomicFolder(const fs::path& destination) : destination_(destination) {
    // Drops the slash of "a/b/", so that the temporary name is beside the folder, not inside it.
    if (!destination_.has_filename()) destination_ = destination_.parent_path();
    partial_ = destination_;
    partial_ += fmt::format(".partial-{}", ::getpid());
    std::error_code failed;
    fs::remove_all(partial_, failed);
    if (!failed) fs::create_directories(partial_, failed);
    LS_CHECK(!failed, CheckpointError, "[weights] {} cannot be created: {}.", partial_.string(),
             failed.message());
  }
  ~AtomicFolder() {
    std::error_code ignored;
    if (!published_) fs::remove_all(partial_, ignored);
  }
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const fs::path& path() const { return partial_; }
  fs::path operator/(const std::string& name) const { return partial_ / name; }

  void publish() {
    const int code = std::rename(partial_.c_str(), destination_.c_str()) == 0 ? 0 : errno;
    LS_CHECK(code == 0, CheckpointError, "[weights] {} cannot be renamed to {}: {}.",
             partial_.string(), destination_.string(), std::generic_category().message(code));
    published_ = true;
    const fs::path parent = destination_.parent_path();
    FileDescriptor(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY).sync();
  }

 private:
  fs::path destination_;
  fs::path partial_;
  bool published_ = false;
};

using Shard = std::span<const nn::StoredParameter>;

int64_t bytes_of(const nn::StoredParameter& parameter, DType dtype) {
  return parameter.tensor.numel() * static_cast<int64_t>(size_of(dtype));
}

/// Divides the parameters into shards; a new one begins where the next parameter would not fit.
std::vector<Shard> shards_of(Shard parameters, int64_t max_bytes, DType dtype) {
  std::vector<Shard> shards;
  size_t begin = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t more = bytes_of(parameters[i], dtype);
    if (i > begin && bytes + more > max_bytes) {
      shards.push_back(parameters.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.push_back(parameters.subspan(begin));
  return shards;
}

void write_shard(const fs::path& path, Shard parameters, DType dtype) {
  std::vector<Tensor> stored;
  std::vector<TensorSpec> specs;
  for (const nn::StoredParameter& parameter : parameters) {
    stored.push_back(parameter.transposed ? parameter.tensor.t() : parameter.tensor);
    const IntList sizes = stored.back().sizes();
    specs.push_back({parameter.name, dtype, {sizes.begin(), sizes.end()}});
  }
  SafetensorsWriter writer(path, specs);
  for (const size_t i : writer.order()) {
    const Tensor tensor = stored[i].to(dtype).contiguous().to(kCPU);
    writer.write({static_cast<const std::byte*>(tensor.data()), tensor.nbytes()});
  }
  writer.publish();
}

void write_shards(const AtomicFolder& folder, const std::vector<Shard>& shards, DType dtype) {
  if (shards.size() == 1) {
    write_shard(folder / "model.safetensors", shards[0], dtype);
    return;
  }
  int64_t total = 0;
  nlohmann::json files = nlohmann::json::object();  // file by tensor, sorted by tensor name
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_shard(folder / file, shards[i], dtype);
    for (const nn::StoredParameter& parameter : shards[i]) {
      files[parameter.name] = file;
      total += bytes_of(parameter, dtype);
    }
  }
  const OrderedJson index = {{"metadata", {{"total_size", total}}}, {"weight_map", files}};
  write_text(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace

std::string hugging_face_config(const nn::LanguageModel& model, const Tokenizer* tokenizer) {
  OrderedJson config = parse_ordered_json(model.hugging_face_config());
  const auto put = [&](const char* key, const std::optional<uint32_t>& id) {
    config[key] = id ? OrderedJson(*id) : OrderedJson();
  };
  const auto end = tokenizer == nullptr ? std::nullopt : tokenizer->end_of_text();
  put("bos_token_id", tokenizer == nullptr ? std::nullopt : tokenizer->begin_of_text());
  put("eos_token_id", end);
  put("pad_token_id", end);  // as is usual for models that were trained without padding
  return config.dump(1) + "\n";
}

void save_hugging_face(const nn::LanguageModel& model, const fs::path& folder,
                       int64_t max_shard_bytes, DType dtype, const Tokenizer* tokenizer) {
  std::error_code ignored;
  LS_CHECK(!fs::exists(fs::symlink_status(folder, ignored)), ConfigError,
           "[weights] {} exists already. Name another folder, or remove this one first.",
           folder.string());
  LS_CHECK(max_shard_bytes > 0, ConfigError,
           "[weights] shards of {} bytes at most: expected a positive number.", max_shard_bytes);
  LS_CHECK(is_floating(dtype), DTypeError,
           "[weights] {} cannot hold weights: expected a floating dtype.", to_string(dtype));
  require_no_multipliers(model, "weights");
  const NoGradGuard no_grad;
  const std::vector<nn::StoredParameter> parameters = model.stored_parameters();
  OrderedJson config = parse_ordered_json(hugging_face_config(model, tokenizer));
  config["torch_dtype"] = to_string(dtype);
  try {
    AtomicFolder whole(folder);
    write_shards(whole, shards_of(parameters, max_shard_bytes, dtype), dtype);
    write_text(whole / "config.json", config.dump(1) + "\n");
    if (tokenizer != nullptr) tokenizer->save(whole.path());
    whole.publish();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace lockstep::train
