#include "train/weights/llmc_model.h"

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "core/ops/factory/copy.h"
#include "train/weights/llmc_header.h"
#include "train/weights/multiplier_files.h"
#include "train/weights/tensor_bytes.h"

namespace lockstep::train {

namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are read as they lie in the file");

constexpr double kEpsilon = 1e-5;

/// The parameters in the order of the file.
std::vector<Tensor> in_order(const nn::Gpt2& model) {
  std::vector<Tensor> tensors = {model.wte.weight, model.wpe.weight};
  const auto of_all_layers = [&](auto parameter) {
    for (const auto& block : model.h) tensors.push_back(parameter(*block));
  };
  of_all_layers([](const nn::Gpt2Block& block) { return block.ln_1.weight; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.ln_1.bias; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.c_attn.weight; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.c_attn.bias; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.attn_c_proj.weight; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.attn_c_proj.bias; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.ln_2.weight; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.ln_2.bias; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.c_fc.weight; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.c_fc.bias; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.mlp_c_proj.weight; });
  of_all_layers([](const nn::Gpt2Block& block) { return block.mlp_c_proj.bias; });
  tensors.push_back(model.ln_f.weight);
  tensors.push_back(model.ln_f.bias);
  return tensors;
}

std::unique_ptr<nn::Gpt2> read(std::span<const std::byte> bytes, const std::string& file) {
  const LlmcHeader found = parse_llmc_header(bytes, file);
  const NoGradGuard no_grad;
  auto model = std::make_unique<nn::Gpt2>(nn::Gpt2Options{.vocabulary = found.vocabulary,
                                                          .context_length = found.positions,
                                                          .layers = found.layers,
                                                          .heads = found.heads,
                                                          .width = found.width,
                                                          .epsilon = kEpsilon});
  bytes = bytes.subspan(sizeof(LlmcHeaderWords));
  for (const Tensor& parameter : in_order(*model)) {
    const Tensor stored = empty_tensor(parameter.sizes(), found.dtype);
    std::memcpy(stored.data(), bytes.data(), stored.nbytes());
    parameter.copy_(stored);
    const bool padded = parameter.is_same(model->wte.weight);
    bytes =
        bytes.subspan(stored.nbytes() + (padded ? static_cast<size_t>(found.padding_bytes()) : 0));
  }
  return model;
}

}  // namespace

bool is_llmc_model(const std::filesystem::path& path) {
  try {
    RegularFile file(path, kMostMappedBytes);
    int32_t magic = 0;
    const size_t got = file.read(std::as_writable_bytes(std::span(&magic, 1)));
    return got == sizeof(magic) && magic == kLlmcModelMagic;
  } catch (const DataError&) {
    return false;
  }
}

std::unique_ptr<nn::Gpt2> load_llmc_model(const std::filesystem::path& path) {
  try {
    // Read, not mapped: a mapped file that shrinks would read as zeros.
    return read(read_whole_bytes(path), path.string());
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

void save_llmc_model(const nn::Gpt2& model, const std::filesystem::path& path, DType dtype) {
  LS_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, DTypeError,
           "[llmc] a model of llm.c holds float32 or bfloat16, got {}.", to_string(dtype));
  const nn::Gpt2Options& options = model.options();
  LS_CHECK(options.epsilon == kEpsilon, ConfigError,
           "[llmc] llm.c computes LayerNorm with an epsilon of {}: this model's is {}.", kEpsilon,
           options.epsilon);
  require_no_multipliers(model, "llmc");
  const NoGradGuard no_grad;
  LlmcHeader saved{.dtype = dtype,
                   .positions = options.context_length,
                   .vocabulary = options.vocabulary,
                   .layers = options.layers,
                   .heads = options.heads,
                   .width = options.width};
  saved.padded_vocabulary =
      (options.vocabulary + kLlmcPaddingMultiple - 1) / kLlmcPaddingMultiple * kLlmcPaddingMultiple;
  const LlmcHeaderWords header = saved.words();
  (void)parse_llmc_header(header,
                          path.string());  // validates: never write a file that the reader refuses
  try {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(header)));
    for (const Tensor& parameter : in_order(model)) {
      file.write(bytes_of(parameter.to(dtype).contiguous().to(kCPU)));
      if (parameter.is_same(model.wte.weight)) {
        file.write(std::vector<std::byte>(static_cast<size_t>(saved.padding_bytes())));
      }
    }
    file.publish();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace lockstep::train
