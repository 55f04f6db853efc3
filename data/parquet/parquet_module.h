#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::train {

/// What liblockstep_parquet.so exports, under the name kParquetModule. The library knows nothing
/// else of it, and it nothing of the library. A `problem` is a text that lives until the next call
/// of the same thread.
struct ParquetModule {
  int32_t version;  ///< kParquetModuleVersion where it was built
  /// Opens a file to read `count` of its columns; null if that fails.
  void* (*open)(const char* path, const char* const* columns, size_t count, const char** problem);
  /// Fills `into` with the next bytes of the rows and returns their number, smaller than `size` at
  /// the end alone; SIZE_MAX if that fails.
  size_t (*read)(void* rows, std::byte* into, size_t size, const char** problem);
  void (*close)(void* rows);
};

inline constexpr int32_t kParquetModuleVersion = 1;
inline constexpr const char* kParquetModule = "lockstep_parquet_module";
inline constexpr const char* kParquetModuleFile = "liblockstep_parquet.so";

}  // namespace lockstep::train
