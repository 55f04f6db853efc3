#include "tests/conformance/case_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"

namespace lockstep::conformance {

namespace {

using Kind = CaseValue::Kind;

/// Returns the number of elements of storage that a view reaches over; nothing if it is no view,
/// because its sizes and strides differ in number, are negative or exceed any storage.
std::optional<int64_t> reach_of(const CaseValue::View& view) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (view.sizes.size() != view.strides.size() || view.offset < 0 || view.offset > kMost) {
    return std::nullopt;
  }
  int64_t reach = view.offset + 1;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    const int64_t size = view.sizes[i], stride = view.strides[i];
    if (size < 0 || size > kMost || stride < 0 || stride > kMost) return std::nullopt;
    if (size > 1 && stride > kMost / (size - 1)) return std::nullopt;
    reach += std::max<int64_t>(size - 1, 0) * stride;
    if (reach > kMost) return std::nullopt;
  }
  const bool empty = std::ranges::find(view.sizes, 0) != view.sizes.end();
  return empty ? view.offset : reach;
}

std::filesystem::path beside(std::filesystem::path path) {
  return path.replace_extension(".safetensors");
}

}  // namespace

CaseFile::CaseFile(const std::filesystem::path& json_path)
    : recorded_(parse_cases(read_whole_file(json_path, kMostJsonBytes), json_path.string())),
      tensors_(beside(json_path)) {}

Tensor CaseFile::tensor(const CaseValue& value) const {
  LS_CHECK(value.kind == Kind::kTensor, DataError, "[conformance] expected a tensor.");
  const train::TensorRecord& record = tensors_.at(value.text);
  Tensor stored = empty_tensor(record.shape, record.dtype);
  if (!record.bytes.empty()) std::memcpy(stored.data(), record.bytes.data(), record.bytes.size());
  if (!value.view) return stored;
  const CaseValue::View& view = *value.view;
  const std::optional<int64_t> reach = reach_of(view);
  LS_CHECK(reach && *reach <= stored.numel(), DataError,
           "[conformance] the view of {} leaves its storage of {} elements.", value.text,
           stored.numel());
  return alias_tensor(stored, view.sizes, view.strides, view.offset, record.dtype, false);
}

}  // namespace lockstep::conformance
