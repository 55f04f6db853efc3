#include "launcher/checkpoint_convert.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "core/base/check.h"
#include "data/tokenizers/tokenizer.h"
#include "launcher/command_line.h"
#include "nn/models/gpt2.h"
#include "train/report/run_directory.h"
#include "train/run/final_model.h"
#include "train/weights.h"
#include "train/weights/gguf_model.h"
#include "train/weights/hugging_face_folder.h"
#include "train/weights/llmc_model.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string source;
  std::string destination;
  std::string to;
  std::string dtype = "f32";
  int64_t max_shard_bytes = train::kMaxShardBytes;
};

/// A model, and the tokenizer that its folder holds.
struct Source {
  std::unique_ptr<nn::LanguageModel> model;
  std::unique_ptr<train::Tokenizer> tokenizer;
};

Source read_source(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  LS_CHECK(fs::exists(status), ConfigError, "[convert] {}: no such file or folder.", path.string());
  if (fs::is_directory(status)) {
    // Of a run that is not finished, its newest checkpoint, as eval and sample take it.
    const fs::path folder = train::model_folder(train::RunDirectory::open(path));
    return {train::load_model(folder), train::find_tokenizer(folder)};
  }
  LS_CHECK(
      train::is_llmc_model(path), ConfigError,
      "[convert] {} is neither a folder with config.json and safetensors nor a model of llm.c.",
      path.string());
  return {train::load_llmc_model(path), nullptr};
}

void write_llmc(const nn::LanguageModel& model, const ConvertOptions& options, DType dtype) {
  const auto* gpt2 = dynamic_cast<const nn::Gpt2*>(&model);
  LS_CHECK(gpt2 != nullptr, ConfigError,
           "[convert] {} holds no GPT-2, and llm.c's files hold nothing else. Use --to hf.",
           options.source);
  train::save_llmc_model(*gpt2, options.destination, dtype);
}

void run_convert(const ConvertOptions& options) {
  std::error_code failed;
  LS_CHECK(!fs::exists(fs::symlink_status(options.destination, failed)), ConfigError,
           "[convert] {} exists already. Name another destination, or remove this one first.",
           options.destination);
  const DType dtype = options.dtype == "bf16" ? DType::kBF16 : DType::kF32;
  const Source source = read_source(options.source);
  nn::change_multipliers(*source.model, {});  // other programs know none
  if (options.to == "llmc") {
    write_llmc(*source.model, options, dtype);
  } else if (options.to == "gguf") {
    fs::path name = fs::path(options.source).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    train::save_gguf(*source.model, source.tokenizer.get(), options.destination, dtype,
                     name.filename().string());
  } else {
    train::save_hugging_face(*source.model, options.destination, options.max_shard_bytes, dtype,
                             source.tokenizer.get());
  }
  fmt::print("{}: {} parameters as {}\n", options.destination, source.model->parameter_count(),
             to_string(dtype));
}

}  // namespace

void add_checkpoint_convert(const Verb& parent) {
  auto options = std::make_shared<ConvertOptions>();
  const Verb verb = parent.verb("convert", "Write a model's weights in another program's format");
  verb.option("source", options->source,
              "Run directory, finished or not, Hugging Face folder (config.json and safetensors), "
              "or model "
              "file of llm.c")
      .required();
  verb.option("destination", options->destination,
              "What to write: a folder for hf, a file for the others. Must not exist")
      .required();
  verb.option("--to", options->to,
              "hf (Hugging Face folder), gguf (llama.cpp's) or llmc (GPT-2 only)")
      .required()
      .one_of({"hf", "llmc", "gguf"});
  verb.option("--dtype", options->dtype, "Elements to write: f32 or bf16 (default f32)")
      .one_of({"f32", "bf16"});
  const Option shard_size =
      verb.option("--max-shard-size", options->max_shard_bytes,
                  "hf: bytes of tensors in one file, as 500MB or 2GiB (default 5GB)")
          .decimal_size()
          .positive();
  verb.runs([options, shard_size] {
    LS_CHECK(!shard_size.given() || options->to == "hf", ConfigError,
             "[convert] --max-shard-size cuts Hugging Face folders: other formats are one file.");
    run_convert(*options);
  });
}

}  // namespace lockstep::launcher
