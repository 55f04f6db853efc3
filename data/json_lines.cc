#include "data/json_lines.h"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/files/zstd.h"
#include "core/base/parse_json.h"
#include "core/base/utf8.h"
#include "data/parquet.h"

namespace lockstep::train {
namespace {

/// Takes the string `field` of one object, whose other members are parsed and dropped. Keeps no
/// document, so that depth costs it nothing.
class FieldReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  FieldReader(const std::string& field, std::string& text) : field_(field), text_(text) {}

  /// What is wrong with the line; empty if nothing is.
  std::string problem() const {
    if (!problem_.empty() || found_) return problem_;
    return fmt::format("the object has no member {:?}: expected one with the text", field_);
  }

  bool start_object(size_t) override {
    if (depth_ > 0 && !value("an object")) return false;
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (!value("an array")) return false;
    ++depth_;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    if (depth_ == 1) wanted_ = key == field_;
    return true;
  }
  bool string(std::string& text) override {
    if (depth_ == 1 && wanted_) {
      text_ = std::move(text);
      found_ = true;
      return true;
    }
    return value("a string");
  }
  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const std::string&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("bytes"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception& error) override {
    if (std::string_view(error.what()).find("surrogate") != std::string_view::npos) {
      return fail(fmt::format("expected UTF-8, got half of a surrogate pair at byte {}", at));
    }
    return fail(fmt::format("expected a JSON object, got what is no JSON from byte {} on", at));
  }

 private:
  bool close() {
    --depth_;
    return true;
  }
  bool value(const char* what) {
    if (depth_ == 0) return fail(fmt::format("expected a JSON object, got {}", what));
    if (depth_ > 1 || !wanted_) return true;
    return fail(fmt::format("{:?} is {}: expected a string", field_, what));
  }
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  const std::string& field_;
  std::string& text_;
  std::string problem_;
  int64_t depth_ = 0;
  bool wanted_ = false;  ///< the value of `field_` is next, or being read
  bool found_ = false;
};

/// Reads `field` of the object on a line to `text`. Returns what is wrong with it, or nothing.
std::string read_field(std::string_view line, const std::string& field, std::string& text) {
  if (std::string problem = utf8_problem(line); !problem.empty()) return problem;
  FieldReader reader(field, text);
  nlohmann::json::sax_parse(line.begin(), line.end(), &reader);
  return reader.problem();
}

}  // namespace

bool is_json_lines(const std::filesystem::path& path) {
  if (is_parquet(path)) return true;
  constexpr std::array<std::string_view, 3> kEnds = {".jsonl", ".jsonl.gz", ".jsonl.zst"};
  const std::string name = path.filename().string();
  for (const std::string_view end : kEnds) {
    if (name.size() > end.size() && name.ends_with(end)) return true;
  }
  return false;
}

ByteSource open_json_lines(const std::filesystem::path& path,
                           const std::vector<std::string>& members) {
  if (is_parquet(path)) return parquet_rows(path, members);
  auto file = std::make_shared<RegularFile>(path, kMostTextBytes);
  ByteSource bytes = [file](std::span<std::byte> into) { return file->read(into); };
  if (path.extension() == ".zst") return zstd_unpacked(std::move(bytes), path.string());
  if (path.extension() == ".gz") return gunzipped(std::move(bytes), path.string());
  return bytes;
}

std::string utf8_problem(std::string_view line) {
  const size_t at = first_invalid_utf8(line);
  if (at == line.size()) return {};
  if (at == 0 && (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff"))) {
    return "expected UTF-8, got UTF-16. Convert the file (iconv -f UTF-16 -t UTF-8)";
  }
  return fmt::format("expected UTF-8, got the byte {:#04x} at byte {} of the line",
                     static_cast<unsigned char>(line[at]), at + 1);
}

DamageableLines::DamageableLines(ByteSource source, std::string file, bool skips_damaged)
    : lines_(std::move(source), std::move(file), kMostJsonBytes), skips_damaged_(skips_damaged) {}

bool DamageableLines::next() {
  while (lines_.next()) {
    if (lines_.text().find_first_not_of(" \t\r") != std::string_view::npos) return true;
  }
  return false;
}

void DamageableLines::skip(const std::string& problem) {
  std::string message = fmt::format("{}: {}", lines_.place(), problem);
  LS_CHECK(skips_damaged_, DataError,
           "[data] {}. Repair the line, or skip such lines (skip_damaged_lines).", message);
  if (skipped_++ == 0) first_skipped_ = std::move(message);
}

JsonLinesReader::JsonLinesReader(const std::filesystem::path& path, JsonLinesOptions options)
    : JsonLinesReader(open_json_lines(path, {options.field}), path.string(), options) {}

JsonLinesReader::JsonLinesReader(ByteSource source, std::string file, JsonLinesOptions options)
    : field_(std::move(options.field)),
      lines_(std::move(source), std::move(file), options.skip_damaged_lines) {}

bool JsonLinesReader::next(std::string& text) {
  while (lines_.next()) {
    text.clear();
    if (const std::string problem = read_field(lines_.text(), field_, text); !problem.empty()) {
      lines_.skip(problem);
    } else if (!text.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace lockstep::train
