#include "train/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/base/terminal_text.h"

namespace lockstep::train::html {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : terminal_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string script_json(std::string json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string table(const Table& table) {
  std::string text = fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>"
      "<caption>{0}</caption>\n<thead><tr>",
      escaped(table.caption));
  for (const std::string& cell : table.head) {
    text += fmt::format("<th scope=\"col\">{}</th>", escaped(cell));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    text += "<tr>";
    const char* format = "<th scope=\"row\">{}</th>";
    for (const std::string& cell : row) {
      text += fmt::format(fmt::runtime(format), escaped(cell));
      format = "<td>{}</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  const auto byte = [&](size_t i) {
    return i < bytes.size() ? uint32_t{static_cast<unsigned char>(bytes[i])} : 0;
  };
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    const size_t digits = std::min<size_t>(bytes.size() - i, 3) + 1;
    for (size_t digit = 0; digit < 4; ++digit) {
      text += digit < digits ? kDigits[group >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

}  // namespace lockstep::train::html
