#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

namespace lockstep::train {

/// The folder of one training run and the paths of its files. A value: it holds no open file.
class RunDirectory {
 public:
  /// Creates a new folder `parent`/NAME-YYYYMMDD-HHMMSS (local time), with "-2", "-3", ... appended
  /// if that exists. Throws ConfigError if `name` is empty or holds a slash; DataError with the
  /// system's reason if it cannot be created.
  static RunDirectory create_new(std::string_view name,
                                 const std::filesystem::path& parent = "runs");

  /// Whether create_at accepts a folder that is not empty.
  enum class Existing { kContinue, kRefuse };
  /// The folder `path`, created with its parents if it is missing. Throws ConfigError if it is not
  /// empty and `existing` is kRefuse; DataError with the system's reason if it is no folder or
  /// cannot be written to.
  static RunDirectory create_at(const std::filesystem::path& path, Existing existing);

  /// Opens the folder of an existing run. Throws DataError if `path` holds none.
  static RunDirectory open(const std::filesystem::path& path);

  /// Whether `path` has files of a run that neither a checkpoint nor a model's folder has.
  static bool is_run(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.txtpb"; }
  std::filesystem::path environment() const { return path_ / "environment.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path weights() const { return path_ / "model.safetensors"; }
  std::filesystem::path model_config() const { return path_ / "config.json"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  /// Says that there was a checkpoint, so that a run that lost them all does not start again.
  std::filesystem::path first_save() const { return path_ / "first_checkpoint.json"; }
  std::filesystem::path samples() const { return path_ / "samples.jsonl"; }
  std::filesystem::path memory() const { return path_ / "memory.json"; }
  std::filesystem::path memory_text() const { return path_ / "memory.txt"; }
  std::filesystem::path memory_pickle() const { return path_ / "memory.pickle"; }
  std::filesystem::path overlap() const { return path_ / "overlap.json"; }
  std::filesystem::path overlap_chart() const { return path_ / "overlap.svg"; }
  std::filesystem::path starts() const { return path_ / "starts.jsonl"; }
  std::filesystem::path goodput() const { return path_ / "goodput.json"; }
  std::filesystem::path restarts() const { return path_ / "restarts.jsonl"; }
  std::filesystem::path profile() const { return path_ / "profile"; }
  std::filesystem::path flight() const { return path_ / "flight"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path prometheus() const { return path_ / "metrics.prom"; }
  std::filesystem::path lock() const { return path_ / "run.lock"; }

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  /// Whether the folder holds a run: any of its files is enough.
  bool holds_run() const;

  std::filesystem::path path_;
};

}  // namespace lockstep::train
