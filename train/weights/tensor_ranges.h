#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "train/weights/safetensors_reader.h"
#include "train/weights/shard_index.h"

namespace lockstep::train {

/// The files of a list of tensors, of which ranges of elements are read: for a rank that keeps
/// parts of a model, and for checkpoints in shards (shard_index.h), whose folder is given as path.
/// Headers are in memory, and a piece of a tensor while it is read. Safe to read from many threads.
class TensorRanges {
 public:
  /// The weights of a model, `stored`, in a file or folder as `load_weights` takes it
  /// (train/weights.h). Throws its errors, but does not compare bytes with a manifest: `verify`
  /// does.
  static TensorRanges of_weights(const std::filesystem::path& path,
                                 const std::vector<nn::StoredParameter>& stored);
  /// A file that holds exactly `tensors`, as `load_tensors` takes it.
  static TensorRanges of_tensors(const std::filesystem::path& path,
                                 const std::vector<nn::StoredParameter>& tensors);

  /// Compares every byte of the files with what the manifest of their folder says, if there is one
  /// (file_digests.h); of the files, each `parts`-th from number `part` on. Throws CheckpointError
  /// naming file and tensor.
  void verify(int part = 0, int parts = 1) const;
  /// Names, sizes and hashes of the headers: another host with the same text has these files.
  std::string identity() const;
  /// Number of tensors in the list.
  size_t size() const { return places_.size(); }
  /// Whether the files have elements of tensor `number` of the list. Those of adapters may be
  /// absent.
  bool has(size_t number) const { return !places_[number].empty(); }
  /// Writes elements `first` to `end` - 1 of tensor `number`, in the order of the list and with the
  /// shape that it has there, to `into`, [end - first] on any device, converted to its dtype.
  /// The matrices of adapters keep their values where the files have no adapters.
  void read(size_t number, int64_t first, int64_t end, const Tensor& into) const;
  /// Fills `into`, of the tensor's shape in the list, any strides and any device.
  void read_whole(size_t number, const Tensor& into) const;

 private:
  struct File {
    std::filesystem::path path;
    std::unique_ptr<const SafetensorsReader> reader;
  };
  /// Where a run of a tensor's elements lies, or all of them.
  struct Place {
    const SafetensorsReader* file = nullptr;
    const TensorEntry* entry = nullptr;
    bool transposed = false;  ///< a whole matrix of which the file holds the transpose
    int64_t first = 0;        ///< the entry's first element within the tensor
  };
  using Places = std::vector<Place>;  ///< of a tensor, one run after the other
  using PlacesByName = std::map<std::string, Places, std::less<>>;
  const SafetensorsReader& open(const std::filesystem::path& path);
  /// Opens the files of a checkpoint in shards and finds the pieces of each tensor.
  PlacesByName open_shards(const std::filesystem::path& folder, std::string_view what,
                           const ShardIndex::Tensors& tensors, int world);
  void read_piece(const Place& place, int64_t first, int64_t end, const Tensor& into) const;
  void read_rows(const Place& place, int64_t first, int64_t end, const Tensor& into) const;

  std::vector<File> files_;
  std::vector<Places> places_;  ///< by tensor
};

}  // namespace lockstep::train
