#include "train/weights/tensor_ranges.h"

#include <algorithm>
#include <map>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "train/weights/file_digests.h"
#include "train/weights/weight_matching.h"

namespace lockstep::train {

namespace {

/// Elements that are read at once: 4 MiB of f32.
constexpr int64_t kMostElements = int64_t{1} << 20;

bool same_bytes(const SafetensorsReader& file_a, const TensorEntry& a,
                const SafetensorsReader& file_b, const TensorEntry& b) {
  bool same = true;
  uint64_t at = 0;
  std::vector<std::byte> other;
  file_a.each_piece(a, [&](std::span<const std::byte> piece) {
    other.resize(piece.size());
    file_b.read(b, at, other);
    same = same && std::ranges::equal(piece, other);
    at += piece.size();
  });
  return same;
}

}  // namespace

const SafetensorsReader& TensorRanges::open(const std::filesystem::path& path) {
  files_.push_back({path, std::make_unique<const SafetensorsReader>(path)});
  return *files_.back().reader;
}

TensorRanges TensorRanges::of_weights(const std::filesystem::path& path,
                                      const std::vector<nn::StoredParameter>& stored) {
  TensorRanges ranges;
  WeightFiles::Entries entries;  // without bytes
  std::map<std::string, Place, std::less<>> places;
  each_weight_file(path, [&](const std::filesystem::path& each) {
    const SafetensorsReader& file = ranges.open(each);
    std::vector<std::string> names;
    for (const TensorEntry& entry : file.tensors()) {
      entries[entry.name] = {{entry.name, entry.dtype, entry.shape, {}}, each.filename().string()};
      places[entry.name] = {&file, &entry, false};
      names.push_back(entry.name);
    }
    return names;
  });
  const std::vector<const TensorRecord*> found =
      match_weights(entries, stored, path, [&](const WeightEntry& a, const WeightEntry& b) {
        const Place& in_a = places.at(a.tensor.name);
        const Place& in_b = places.at(b.tensor.name);
        return same_bytes(*in_a.file, *in_a.entry, *in_b.file, *in_b.entry);
      });
  for (size_t i = 0; i < stored.size(); ++i) {
    ranges.places_.push_back(places.at(found[i]->name));
    ranges.places_.back().transposed = stored[i].transposed;
  }
  return ranges;
}

TensorRanges TensorRanges::of_tensors(const std::filesystem::path& path,
                                      const std::vector<nn::StoredParameter>& tensors) {
  check_fits(path, tensors);
  TensorRanges ranges;
  const SafetensorsReader& file = ranges.open(path);
  for (const nn::StoredParameter& each : tensors) {
    ranges.places_.push_back({&file, file.find(each.name), false});
  }
  return ranges;
}

void TensorRanges::verify() const {
  for (const File& file : files_) {
    const FileDigests written = digests_in(file.path.parent_path());
    const auto found = written.find(file.path.filename().string());
    if (found != written.end()) check_digest(file.path, found->second, digest_of(*file.reader));
  }
}

std::string TensorRanges::identity() const {
  std::string text;
  for (const File& file : files_) {
    text += fmt::format("{} {}\n", file.path.filename().string(),
                        ContentHasher().add(file.reader->header()).result().hex());
  }
  return text;
}

void TensorRanges::read(size_t number, int64_t first, int64_t end, const Tensor& into) const {
  const NoGradGuard no_grad;
  const Place& place = places_[number];
  LS_ASSERT(into.numel() == end - first);
  if (place.transposed) return read_rows(place, first, end, into);
  const size_t element = size_of(place.entry->dtype);
  for (int64_t at = first; at < end; at += kMostElements) {
    const int64_t next = std::min(end, at + kMostElements);
    const Tensor piece = empty_tensor({next - at}, place.entry->dtype);
    place.file->read(*place.entry, static_cast<uint64_t>(at) * element,
                     {static_cast<std::byte*>(piece.data()), piece.nbytes()});
    slice(into, 0, at - first, next - first).copy_(piece);
  }
}

/// Reads elements of a matrix whose transpose is in the file: rows of it are columns there.
void TensorRanges::read_rows(const Place& place, int64_t first, int64_t end,
                             const Tensor& into) const {
  const size_t element = size_of(place.entry->dtype);
  const int64_t width = place.entry->shape[0], height = place.entry->shape[1];
  const int64_t last_row = (end + width - 1) / width;
  const int64_t most = std::max<int64_t>(1, kMostElements / width);
  for (int64_t row = first / width; row < last_row; row += most) {
    const int64_t rows = std::min(most, last_row - row);
    const Tensor piece = empty_tensor({width, rows}, place.entry->dtype);
    const size_t bytes = static_cast<size_t>(rows) * element;
    for (int64_t column = 0; column < width; ++column) {
      place.file->read(
          *place.entry, static_cast<uint64_t>(column * height + row) * element,
          {static_cast<std::byte*>(piece.data()) + static_cast<size_t>(column) * bytes, bytes});
    }
    const Tensor flat = piece.t().contiguous().view({-1});
    const int64_t begin = row * width;
    const int64_t from = std::max(first, begin), to = std::min(end, begin + rows * width);
    slice(into, 0, from - first, to - first).copy_(slice(flat, 0, from - begin, to - begin));
  }
}

}  // namespace lockstep::train
