#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/files/gzip.h"

namespace lockstep::train {

/// Whether `path` is named as a Parquet file: its name ends in .parquet.
bool is_parquet(const std::filesystem::path& path);
/// Whether Parquet files can be read: the module for that, which is built where Arrow is found,
/// lies beside this library. It is loaded with the first file, as Arrow takes longer to load than
/// all the rest. Thread-safe.
bool has_parquet();
/// The rows of a Parquet file as JSON lines: each an object of the columns `columns`, whose types
/// may be nested. Rows are read a few at a time; what is compressed may be so in any way that Arrow
/// knows. Throws DataError naming the file if it is none, lacks a column or holds a type without a
/// form in JSON, or if Parquet files cannot be read; and so does reading what is damaged.
ByteSource parquet_rows(const std::filesystem::path& path, const std::vector<std::string>& columns);

}  // namespace lockstep::train
