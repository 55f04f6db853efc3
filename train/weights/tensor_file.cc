#include "train/weights/tensor_file.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/device/transfer.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "train/weights/file_digests.h"
#include "train/weights/name_index.h"
#include "train/weights/safetensors_reader.h"
#include "train/weights/tensor_bytes.h"
#include "train/weights/tensor_ranges.h"

namespace lockstep::train {

namespace {

/// Storage and offset, sizes, strides, transposed.
using ViewKey = std::tuple<const void*, int64_t, std::vector<int64_t>, std::vector<int64_t>, bool>;

ViewKey view_key(const nn::StoredParameter& stored) {
  const IntList sizes = stored.tensor.sizes();
  const IntList strides = stored.tensor.strides();
  return {stored.tensor.storage().get(),
          stored.tensor.storage_offset(),
          {sizes.begin(), sizes.end()},
          {strides.begin(), strides.end()},
          stored.transposed};
}

ContentHash hash_of(std::span<const std::byte> bytes) {
  return ContentHasher().add(bytes).result();
}

/// Throws CheckpointError listing what keeps `found`, the tensors of a file, from being exactly
/// `tensors`. `Found` has members name, dtype and shape.
template <class Found>
void check_fit(const std::filesystem::path& path, const std::vector<Found>& found,
               std::span<const nn::StoredParameter> tensors) {
  std::string problems;
  NameIndex places(found.size());
  for (const Found& each : found) places.add(each.name);
  std::vector<bool> expected(found.size());
  for (const nn::StoredParameter& tensor : tensors) {
    const std::optional<size_t> place =
        places.find(tensor.name, [&](size_t i) -> std::string_view { return found[i].name; });
    if (!place) {
      problems += fmt::format("\n  missing {}", tensor.name);
      continue;
    }
    expected[*place] = true;
    const Found& record = found[*place];
    if (record.dtype != tensor.tensor.dtype() || !same(record.shape, tensor.tensor.sizes())) {
      problems += fmt::format("\n  {}: expected {}{}, got {}{}", tensor.name,
                              to_string(tensor.tensor.dtype()), to_string(tensor.tensor.sizes()),
                              to_string(record.dtype), to_string(IntList(record.shape)));
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!expected[i]) problems += "\n  unexpected " + found[i].name;
  }
  LS_CHECK(problems.empty(), CheckpointError, "[checkpoint] {} does not fit:{}", path.string(),
           problems);
}

}  // namespace

FileDigest save_tensors(const std::filesystem::path& path,
                        std::span<const nn::StoredParameter> tensors,
                        std::map<std::string, std::string> metadata,
                        const std::function<Tensor(size_t)>& values) {
  const NoGradGuard no_grad;
  std::map<ViewKey, std::string> first_names;
  std::vector<TensorSpec> specs;
  std::vector<size_t> numbers;  ///< of specs, in `tensors`
  const auto as_stored = [&](size_t number, const Tensor& tensor) {
    return tensors[number].transposed ? tensor.t() : tensor;
  };
  for (size_t number = 0; number < tensors.size(); ++number) {
    const nn::StoredParameter& tensor = tensors[number];
    const auto [first, is_new] = first_names.emplace(view_key(tensor), tensor.name);
    if (!is_new && tensor.tensor.numel() > 0) {
      metadata[tensor.name] = first->second;
      continue;
    }
    numbers.push_back(number);
    const Tensor stored = as_stored(number, tensor.tensor);
    const IntList sizes = stored.sizes();
    specs.push_back({tensor.name, stored.dtype(), {sizes.begin(), sizes.end()}});
  }
  SafetensorsWriter writer(path, specs, std::move(metadata));
  FileDigest digest;
  digest.bytes = writer.header().size();
  digest.header = hash_of(std::as_bytes(std::span(writer.header())));
  for (const size_t i : writer.order()) {
    const size_t number = numbers[i];
    const Tensor value = values ? values(number) : tensors[number].tensor;
    const Tensor contiguous = as_stored(number, value).contiguous().to(kCPU);
    const std::span<const std::byte> bytes = bytes_of(contiguous);
    digest.tensors.insert_or_assign(digest.tensors.end(), specs[i].name, hash_of(bytes));
    digest.bytes += bytes.size();
    writer.write(bytes);
  }
  writer.publish();
  return digest;
}

void load_tensors(const std::filesystem::path& path, std::span<const nn::StoredParameter> tensors,
                  const FileDigests* written) {
  const NoGradGuard no_grad;
  if (shards_in(path)) {
    const TensorRanges files = TensorRanges::of_tensors(path, {tensors.begin(), tensors.end()});
    files.verify();
    for (size_t i = 0; i < tensors.size(); ++i) files.read_whole(i, tensors[i].tensor);
    return;
  }
  const SafetensorsFile file(path);
  check_file(path, file, written);
  check_fit(path, file.tensors(), tensors);
  for (const nn::StoredParameter& tensor : tensors) {
    const TensorRecord& record = file.at(tensor.name);
    LS_ASSERT(tensor.tensor.is_contiguous());
    transfer_bytes(tensor.tensor.data(), tensor.tensor.device(), record.bytes.data(), kCPU,
                   record.bytes.size());
    tensor.tensor.storage()->bump_version();
  }
}

void check_fits(const std::filesystem::path& path, std::span<const nn::StoredParameter> tensors) {
  check_fit(path, SafetensorsReader(path).tensors(), tensors);
}

void check_fits(const std::filesystem::path& path, const std::vector<TensorSpec>& found,
                std::span<const nn::StoredParameter> tensors) {
  check_fit(path, found, tensors);
}

FileDigest digest_of(const std::filesystem::path& path) {
  return digest_of(SafetensorsReader(path));
}

FileDigest digest_of(const SafetensorsFile& file) {
  FileDigest digest;
  digest.bytes = file.header().size();
  digest.header = hash_of(file.header());
  for (const TensorRecord& tensor : file.tensors()) {
    digest.tensors.insert_or_assign(digest.tensors.end(), tensor.name, hash_of(tensor.bytes));
    digest.bytes += tensor.bytes.size();
  }
  return digest;
}

void check_digest(const std::filesystem::path& path, const FileDigest& written,
                  const FileDigest& found) {
  LS_CHECK(found.bytes == written.bytes, CheckpointError,
           "[checkpoint] {}: {} bytes were written, now it has {}. The file is damaged.",
           path.string(), written.bytes, found.bytes);
  LS_CHECK(found.header == written.header, CheckpointError,
           "[checkpoint] {}: the header is not what was written. The file is damaged.",
           path.string());
  auto other = found.tensors.begin();
  for (const auto& [name, hash] : written.tensors) {
    while (other != found.tensors.end() && other->first < name) ++other;
    LS_CHECK(other != found.tensors.end() && other->first == name && other->second == hash,
             CheckpointError,
             "[checkpoint] {}: tensor \"{}\" is not what was written. The file is damaged.",
             path.string(), name);
  }
}

}  // namespace lockstep::train
