// liblockstep_parquet.so: reads Parquet files through Arrow. A library of its own, which links
// nothing of ours (data/parquet.h).

#include "data/parquet/parquet_module.h"

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

/// Rows that are decoded at once: long texts must fit into memory beside each other.
constexpr int64_t kRowsAtOnce = 256;

void check(const arrow::Status& status, const char* doing) {
  if (!status.ok()) throw std::runtime_error(std::string(doing) + ": " + status.message());
}

template <class T>
T value_of(arrow::Result<T> result, const char* doing) {
  check(result.status(), doing);
  return *std::move(result);
}

void append_quoted(std::string_view text, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kDigits[code >> 4];
      out += kDigits[code & 15];
    } else {
      out += each;
    }
  }
  out += '"';
}

void append_value(const arrow::Array& array, int64_t row, std::string& out);

template <class Array>
void append_list(const arrow::Array& array, int64_t row, std::string& out) {
  const auto& list = static_cast<const Array&>(array);
  const int64_t first = list.value_offset(row);
  out += '[';
  for (int64_t i = 0; i < list.value_length(row); ++i) {
    if (i > 0) out += ',';
    append_value(*list.values(), first + i, out);
  }
  out += ']';
}

void append_struct(const arrow::Array& array, int64_t row, std::string& out) {
  const auto& fields = static_cast<const arrow::StructArray&>(array);
  out += '{';
  for (int i = 0; i < fields.num_fields(); ++i) {
    if (i > 0) out += ',';
    append_quoted(fields.struct_type()->field(i)->name(), out);
    out += ':';
    append_value(*fields.field(i), row, out);
  }
  out += '}';
}

/// Appends element `row` as JSON. What JSON has no form for is written as Arrow's text of it.
void append_value(const arrow::Array& array, int64_t row, std::string& out) {
  using Type = arrow::Type;
  if (array.IsNull(row)) {
    out += "null";
    return;
  }
  const Type::type type = array.type_id();
  switch (type) {
    case Type::STRING:
    case Type::BINARY:
      return append_quoted(static_cast<const arrow::BinaryArray&>(array).GetView(row), out);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return append_quoted(static_cast<const arrow::LargeBinaryArray&>(array).GetView(row), out);
    case Type::LIST:
      return append_list<arrow::ListArray>(array, row, out);
    case Type::LARGE_LIST:
      return append_list<arrow::LargeListArray>(array, row, out);
    case Type::STRUCT:
      return append_struct(array, row, out);
    case Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return append_value(*coded.dictionary(), coded.GetValueIndex(row), out);
    }
    default:
      break;
  }
  const std::string text = value_of(array.GetScalar(row), "a value")->ToString();
  const bool is_bare = type == Type::BOOL || arrow::is_integer(type);
  is_bare ? void(out += text) : append_quoted(text, out);
}

/// The rows of some columns, as lines.
class Rows {
 public:
  Rows(const char* path, const std::vector<std::string>& columns) {
    auto file = value_of(arrow::io::ReadableFile::Open(path), "it cannot be read");
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(std::move(file)), "expected a Parquet file");
    parquet::ArrowReaderProperties properties;
    properties.set_batch_size(kRowsAtOnce);
    builder.properties(properties);
    reader_ = value_of(builder.Build(), "its columns cannot be read");
    std::vector<int> groups;
    for (int i = 0; i < reader_->num_row_groups(); ++i) groups.push_back(i);
    batches_ = value_of(reader_->GetRecordBatchReader(groups, leaves_of(columns)),
                        "its rows cannot be read");
  }

  size_t read(std::byte* into, size_t size) {
    size_t filled = 0;
    while (filled < size) {
      if (at_ == lines_.size() && !read_batch()) break;
      const size_t count = std::min(size - filled, lines_.size() - at_);
      std::memcpy(into + filled, lines_.data() + at_, count);
      filled += count;
      at_ += count;
    }
    return filled;
  }

 private:
  /// The columns of the file that make up those of the given names: a nested one has several.
  std::vector<int> leaves_of(const std::vector<std::string>& columns) const {
    const parquet::SchemaDescriptor& schema = *reader_->parquet_reader()->metadata()->schema();
    std::set<std::string> missing(columns.begin(), columns.end());
    std::vector<int> leaves;
    std::string known;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const std::string& name = schema.GetColumnRoot(i)->name();
      if (std::ranges::find(columns, name) != columns.end()) {
        leaves.push_back(i);
        missing.erase(name);
      }
      if (!known.ends_with("\"" + name + "\"")) {
        known += (known.empty() ? "\"" : ", \"") + name + "\"";
      }
    }
    if (!missing.empty()) {
      throw std::runtime_error("it has no column \"" + *missing.begin() + "\": expected one of " +
                               known);
    }
    return leaves;
  }

  /// Makes lines of the next rows; returns false at the end.
  bool read_batch() {
    lines_.clear();
    at_ = 0;
    std::shared_ptr<arrow::RecordBatch> batch;
    while (lines_.empty()) {
      check(batches_->ReadNext(&batch), "it is damaged");
      if (batch == nullptr) return false;
      for (int64_t row = 0; row < batch->num_rows(); ++row) append_row(*batch, row);
    }
    return true;
  }

  void append_row(const arrow::RecordBatch& batch, int64_t row) {
    lines_ += '{';
    for (int i = 0; i < batch.num_columns(); ++i) {
      if (i > 0) lines_ += ',';
      append_quoted(batch.column_name(i), lines_);
      lines_ += ':';
      append_value(*batch.column(i), row, lines_);
    }
    lines_ += "}\n";
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::string lines_;  ///< of the rows that were decoded last
  size_t at_ = 0;      ///< the first of its bytes that was not read
};

/// Returns what `call` returns, or `failed` with the reason: no exception of another library's
/// types leaves the module.
template <class Call>
auto guarded(const char** problem, decltype(std::declval<Call>()()) failed, const Call& call) {
  static thread_local std::string reason;
  try {
    return call();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  std::ranges::replace(reason, '\n', ' ');
  while (reason.ends_with('.') || reason.ends_with(' ')) reason.pop_back();
  *problem = reason.c_str();
  return failed;
}

void* open_rows(const char* path, const char* const* columns, size_t count, const char** problem) {
  return guarded(problem, static_cast<void*>(nullptr), [&]() -> void* {
    return new Rows(path, std::vector<std::string>(columns, columns + count));
  });
}

size_t read_rows(void* rows, std::byte* into, size_t size, const char** problem) {
  return guarded(problem, SIZE_MAX, [&] { return static_cast<Rows*>(rows)->read(into, size); });
}

void close_rows(void* rows) { delete static_cast<Rows*>(rows); }

}  // namespace
}  // namespace lockstep::train

extern "C" [[gnu::visibility(
    "default")]] constexpr lockstep::train::ParquetModule lockstep_parquet_module = {
    lockstep::train::kParquetModuleVersion, lockstep::train::open_rows, lockstep::train::read_rows,
    lockstep::train::close_rows};
