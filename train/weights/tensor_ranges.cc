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

int64_t element_count(const TensorEntry& entry) {
  return static_cast<int64_t>((entry.end - entry.begin) / size_of(entry.dtype));
}

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

TensorRanges::PlacesByName TensorRanges::open_shards(const std::filesystem::path& folder,
                                                     std::string_view what,
                                                     const ShardIndex::Tensors& tensors,
                                                     int world) {
  std::map<int, const SafetensorsReader*> opened;  // by rank
  PlacesByName found;
  for (const auto& [name, tensor] : tensors) {
    Places& places = found[name];
    for (const ShardPiece& piece : tensor.pieces) {
      const std::filesystem::path path = folder / shard_file(what, piece.rank, world);
      const SafetensorsReader*& file = opened[piece.rank];
      if (file == nullptr) file = &open(path);
      const TensorEntry* entry = file->find(name);
      LS_CHECK(
          entry != nullptr && entry->dtype == tensor.dtype &&
              entry->shape == std::vector<int64_t>{piece.end - piece.first},
          CheckpointError,
          "[checkpoint] {}: expected {} elements of tensor \"{}\" in {}, as the manifest says. "
          "The file is damaged, or of another checkpoint.",
          path.string(), piece.end - piece.first, name, to_string(tensor.dtype));
      places.push_back({file, entry, false, piece.first});
    }
  }
  return found;
}

TensorRanges TensorRanges::of_weights(const std::filesystem::path& path,
                                      const std::vector<nn::StoredParameter>& stored) {
  TensorRanges ranges;
  WeightFiles::Entries entries;  // without bytes
  PlacesByName places;
  const std::optional<ShardIndex> shards = shards_in(path);
  if (shards) {
    places = ranges.open_shards(path, kWeightShards, shards->weights, shards->world);
    for (const auto& [name, tensor] : shards->weights) {
      entries[name] = {{name, tensor.dtype, tensor.stored_shape(), {}}, "shards"};
    }
  } else {
    each_weight_file(path, [&](const std::filesystem::path& each) {
      const SafetensorsReader& file = ranges.open(each);
      std::vector<std::string> names;
      for (const TensorEntry& entry : file.tensors()) {
        entries[entry.name] = {{entry.name, entry.dtype, entry.shape, {}},
                               each.filename().string()};
        places[entry.name] = {{&file, &entry, false, 0}};
        names.push_back(entry.name);
      }
      return names;
    });
  }
  const std::vector<const TensorRecord*> found =
      match_weights(entries, stored, path, [&](const WeightEntry& a, const WeightEntry& b) {
        // Their pieces need not be the same runs: two names are two tensors there.
        if (shards) return false;
        const Place& in_a = places.at(a.tensor.name).front();
        const Place& in_b = places.at(b.tensor.name).front();
        return same_bytes(*in_a.file, *in_a.entry, *in_b.file, *in_b.entry);
      });
  for (size_t i = 0; i < stored.size(); ++i) {
    if (found[i] == nullptr) {  // an adapter, which keeps its values
      ranges.places_.emplace_back();
      continue;
    }
    const std::string& name = found[i]->name;
    ranges.places_.push_back(places.at(name));
    if (!shards) {
      ranges.places_.back().front().transposed = stored[i].transposed;
      continue;
    }
    LS_CHECK(shards->weights.at(name).transposed == stored[i].transposed, CheckpointError,
             "[checkpoint] {}: tensor \"{}\" is of another kind of model: it is {}transposed in "
             "Hugging Face's files, and this model's {}.",
             path.string(), name, stored[i].transposed ? "not " : "",
             stored[i].transposed ? "is" : "is not");
  }
  return ranges;
}

TensorRanges TensorRanges::of_tensors(const std::filesystem::path& path,
                                      const std::vector<nn::StoredParameter>& tensors) {
  TensorRanges ranges;
  if (const std::optional<ShardIndex> shards = shards_in(path)) {
    std::vector<TensorSpec> specs;
    for (const auto& [name, tensor] : shards->optimizer) {
      specs.push_back({name, tensor.dtype, tensor.shape});
    }
    check_fits(path, specs, tensors);
    const PlacesByName places =
        ranges.open_shards(path, kOptimizerShards, shards->optimizer, shards->world);
    for (const nn::StoredParameter& each : tensors) ranges.places_.push_back(places.at(each.name));
    return ranges;
  }
  check_fits(path, tensors);
  const SafetensorsReader& file = ranges.open(path);
  for (const nn::StoredParameter& each : tensors) {
    ranges.places_.push_back({{&file, file.find(each.name), false, 0}});
  }
  return ranges;
}

void TensorRanges::verify(int part, int parts) const {
  for (size_t i = static_cast<size_t>(part); i < files_.size(); i += static_cast<size_t>(parts)) {
    const File& file = files_[i];
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
  const Places& places = places_[number];
  LS_ASSERT(into.numel() == end - first);
  // The last run that begins at `first` or before.
  auto place = std::ranges::upper_bound(places, first, {}, &Place::first);
  if (place != places.begin()) --place;
  for (; place != places.end() && place->first < end; ++place) {
    const int64_t size = element_count(*place->entry);
    const int64_t from = std::max(first, place->first);
    const int64_t to = std::min(end, place->first + size);
    if (from >= to) continue;
    const Tensor part = slice(into, 0, from - first, to - first);
    if (place->transposed) {
      read_rows(*place, from, to, part);
    } else {
      read_piece(*place, from - place->first, to - place->first, part);
    }
  }
}

void TensorRanges::read_whole(size_t number, const Tensor& into) const {
  const NoGradGuard no_grad;
  if (!has(number)) return;
  const Tensor values = empty({into.numel()}, into.options());
  read(number, 0, into.numel(), values);
  into.copy_(values.view(into.sizes()));
}

/// Reads elements of a run, counted from its first.
void TensorRanges::read_piece(const Place& place, int64_t first, int64_t end,
                              const Tensor& into) const {
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
