#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nn/module.h"
#include "train/weights/safetensors_reader.h"

namespace lockstep::train {

/// The files of a list of tensors, of which ranges of elements are read: for a rank that keeps
/// parts of a model. Headers are in memory, and a piece of a tensor while it is read. Safe to read
/// from many threads.
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
  /// (file_digests.h). Throws CheckpointError naming file and tensor.
  void verify() const;
  /// Names, sizes and hashes of the headers: another host with the same text has these files.
  std::string identity() const;
  /// Writes elements `first` to `end` - 1 of tensor `number`, in the order of the list and with the
  /// shape that it has there, to `into`, [end - first] on any device, converted to its dtype.
  void read(size_t number, int64_t first, int64_t end, const Tensor& into) const;

 private:
  struct File {
    std::filesystem::path path;
    std::unique_ptr<const SafetensorsReader> reader;
  };
  struct Place {
    const SafetensorsReader* file = nullptr;
    const TensorEntry* entry = nullptr;
    bool transposed = false;
  };
  const SafetensorsReader& open(const std::filesystem::path& path);
  void read_rows(const Place& place, int64_t first, int64_t end, const Tensor& into) const;

  std::vector<File> files_;
  std::vector<Place> places_;  ///< by tensor
};

}  // namespace lockstep::train
