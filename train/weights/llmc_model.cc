#include "train/weights/llmc_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/mapped_file.h"
#include "core/ops/factory/copy.h"
#include "train/weights/tensor_bytes.h"

namespace lockstep::train {

namespace {

static_assert(std::endian::native == std::endian::little,
              "headers and elements are read as they lie in the file");

constexpr int32_t kMagic = 20240326;
constexpr size_t kHeaderWords = 256;
constexpr size_t kHeaderBytes = kHeaderWords * sizeof(int32_t);
constexpr int64_t kPaddingMultiple = 128;
constexpr double kEpsilon = 1e-5;

using Header = std::array<int32_t, kHeaderWords>;

int32_t version_of(DType dtype) { return dtype == DType::kF32 ? 3 : 5; }

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

/// The parsed header.
struct Description {
  nn::Gpt2Options options;
  DType dtype = DType::kF32;
  int64_t padded_vocabulary = 0;

  int64_t padding_bytes() const {
    return (padded_vocabulary - options.vocabulary) * options.width *
           static_cast<int64_t>(size_of(dtype));
  }
  /// Expected size of the file; the bounds that `describe` checks keep it from overflowing.
  int64_t file_bytes() const {
    const int64_t c = options.width;
    const int64_t per_layer = 12 * c * c + 13 * c;
    const int64_t elements =
        (padded_vocabulary + options.context_length) * c + options.layers * per_layer + 2 * c;
    return static_cast<int64_t>(kHeaderBytes) + elements * static_cast<int64_t>(size_of(dtype));
  }
};

Description describe(const Header& header, const std::string& file) {
  LS_CHECK(header[0] == kMagic, CheckpointError,
           "[llmc] {}: wrong magic at byte 0: expected {}, got {}. It is no model of llm.c.", file,
           kMagic, header[0]);
  LS_CHECK(header[1] == version_of(DType::kF32) || header[1] == version_of(DType::kBF16),
           CheckpointError,
           "[llmc] {}: wrong version at byte 4: expected 3 (float32) or 5 (bfloat16), got {}.",
           file, header[1]);
  const auto field = [&](size_t index, const char* name, int64_t from, int64_t to) {
    const int64_t value = header[index];
    LS_CHECK(value >= from && value <= to, CheckpointError,
             "[llmc] {}: {} at byte {}: expected {} to {}, got {}.", file, name,
             index * sizeof(int32_t), from, to, value);
    return value;
  };
  constexpr int64_t kMaxVocabulary = 1 << 24;
  Description found;
  found.dtype = header[1] == version_of(DType::kF32) ? DType::kF32 : DType::kBF16;
  found.options.context_length = field(2, "positions", 1, 1 << 20);
  found.options.vocabulary = field(3, "vocabulary", 1, kMaxVocabulary);
  found.options.layers = field(4, "layers", 1, 10000);
  found.options.heads = field(5, "heads", 1, 1 << 16);
  found.options.width = field(6, "width", 1, 1 << 20);
  found.padded_vocabulary =
      field(7, "padded vocabulary", found.options.vocabulary, kMaxVocabulary + kPaddingMultiple);
  found.options.epsilon = kEpsilon;
  LS_CHECK(found.options.width % found.options.heads == 0, CheckpointError,
           "[llmc] {}: heads at byte 20: expected a divisor of the width {}, got {}.", file,
           found.options.width, found.options.heads);
  return found;
}

std::unique_ptr<nn::Gpt2> read(std::span<const std::byte> bytes, const std::string& file) {
  Header header;
  LS_CHECK(bytes.size() >= kHeaderBytes, CheckpointError,
           "[llmc] {}: expected a header of {} bytes, but the file ends at byte {}.", file,
           kHeaderBytes, bytes.size());
  std::memcpy(header.data(), bytes.data(), kHeaderBytes);
  const Description found = describe(header, file);
  LS_CHECK(bytes.size() == static_cast<size_t>(found.file_bytes()), CheckpointError,
           "[llmc] {}: the header asks for a file of {} bytes, but it has {}. It was cut short or "
           "damaged.",
           file, found.file_bytes(), bytes.size());
  const NoGradGuard no_grad;
  auto model = std::make_unique<nn::Gpt2>(found.options);
  bytes = bytes.subspan(kHeaderBytes);
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
    const MappedFile file(path);
    int32_t magic = 0;
    if (file.bytes().size() < sizeof(magic)) return false;
    std::memcpy(&magic, file.bytes().data(), sizeof(magic));
    return magic == kMagic;
  } catch (const DataError&) {
    return false;
  }
}

std::unique_ptr<nn::Gpt2> load_llmc_model(const std::filesystem::path& path) {
  try {
    return read(MappedFile(path).bytes(), path.string());
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
  const NoGradGuard no_grad;
  Description saved{options, dtype, 0};
  saved.padded_vocabulary =
      (options.vocabulary + kPaddingMultiple - 1) / kPaddingMultiple * kPaddingMultiple;
  Header header{};
  header[0] = kMagic;
  header[1] = version_of(dtype);
  const std::array values = {options.context_length, options.vocabulary, options.layers,
                             options.heads,          options.width,      saved.padded_vocabulary};
  std::ranges::transform(values, header.begin() + 2,
                         [](int64_t value) { return static_cast<int32_t>(value); });
  describe(header, path.string());  // validates: never write a file that the reader refuses
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
