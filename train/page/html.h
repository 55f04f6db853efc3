#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Pieces of an HTML page. Text from runs enters the page through these functions alone.
namespace lockstep::train::html {

/// Makes text of any origin safe in elements and in quoted attributes: markup is escaped, control
/// characters become their pictures, bytes that are not UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

/// Makes a JSON document safe in a script element: no "<" is left in it.
std::string script_json(std::string json);

/// A table whose first column names the rows. Texts are escaped. `caption` says what it is.
struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
std::string table(const Table& table);

std::string base64(std::string_view bytes);

}  // namespace lockstep::train::html
