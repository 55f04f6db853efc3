#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/files/gzip.h"
#include "data/sample_source.h"
#include "data/token_data.h"

namespace lockstep::train {

struct TableDataOptions {
  double scale = 1;           ///< every feature is multiplied by it
  int64_t held_out_rows = 0;  ///< rows at the end of the file; 0: the last tenth
  /// kRandom: rows are drawn with repetition; kShuffled: each row once per epoch.
  WindowOrder order = WindowOrder::kRandom;
  uint64_t seed = 0;
  /// Rows of one step over all ranks, so that kShuffled knows where a step begins. The order does
  /// not depend on how ranks share them.
  int64_t samples_per_step = 1;
  int64_t features = 0;  ///< features that the model expects; 0: as many as the file has
  int64_t classes = 0;   ///< classes of the model; 0: one more than the largest label
};

/// Samples from a CSV file, plain or gzip-compressed: one sample per line, comma-separated numbers,
/// the last of them the label, an integer from 0. A first line with anything but numbers is a
/// header and is skipped.
class TableData : public SampleSource {
 public:
  /// Reads the file a piece at a time. Throws DataError naming file and line if the file is
  /// missing, unreadable, damaged, not text or has no rows; if a row has another number of fields,
  /// a field is not a finite number or a label is not a class; and if no rows are left to train on.
  TableData(const std::filesystem::path& path, TableDataOptions options);
  /// Reads the contents of a file from `source`; `name` names it in errors.
  TableData(ByteSource source, const std::string& name, TableDataOptions options);

  int64_t features() const override { return features_; }
  int64_t classes() const override { return classes_; }
  int64_t sample(int64_t step, int64_t index, std::span<float> features) const override;
  /// In the table's rows, a header not counted.
  std::vector<SampleOrigin> origins(int64_t step, int64_t count) const override;
  int64_t held_out_samples() const override { return rows() - training_rows_; }
  int64_t held_out_sample(int64_t index, std::span<float> features) const override;
  /// Hash of all training rows, after scaling.
  ContentHash fingerprint() const override;
  /// Hash of all rows.
  ContentHash identity() const override;

  int64_t training_samples() const { return training_rows_; }

 private:
  int64_t rows() const { return static_cast<int64_t>(labels_.size()); }
  int64_t row_of(int64_t step, int64_t index) const;
  int64_t read_row(int64_t row, std::span<float> features) const;

  std::string name_;
  TableDataOptions options_;
  int64_t features_ = 0;
  int64_t classes_ = 0;
  int64_t training_rows_ = 0;
  std::vector<float> values_;  ///< [rows, features]
  std::vector<int64_t> labels_;
};

/// An endless source of normally distributed features and uniformly drawn labels, for benchmarks.
/// Holds nothing out.
class RandomSamples : public SampleSource {
 public:
  /// Throws DataError unless both numbers are at least 1.
  RandomSamples(int64_t features, int64_t classes, uint64_t seed);

  int64_t features() const override { return features_; }
  int64_t classes() const override { return classes_; }
  int64_t sample(int64_t step, int64_t index, std::span<float> features) const override;
  int64_t held_out_samples() const override { return 0; }
  int64_t held_out_sample(int64_t index, std::span<float> features) const override;
  ContentHash fingerprint() const override;

 private:
  int64_t features_;
  int64_t classes_;
  uint64_t seed_;
};

}  // namespace lockstep::train
