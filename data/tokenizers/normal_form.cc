#include "data/tokenizers/normal_form.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "core/base/utf8.h"

namespace lockstep::train {
namespace {

/// Begins the first code points that change others, or are changed: U+0300 and those behind it.
bool may_change(char byte) { return static_cast<unsigned char>(byte) >= 0xcc; }

size_t begin_of_last(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && continues_utf8(text[at])) --at;
  return at;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Nothing if the text is not UTF-8.
std::optional<std::string> mapped(std::string_view text) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size =
      ::utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &result,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(result);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (size < 0) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
}

}  // namespace

std::optional<std::string> composed(std::string_view text) {
  std::optional<std::string> result;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    if (!may_change(text[at])) {
      ++at;
      continue;
    }
    // The character before it may take it up. The next one below U+0300 begins anew.
    const size_t begin = at > done ? done + begin_of_last(text.substr(done, at - done)) : at;
    while (at < text.size() && (may_change(text[at]) || continues_utf8(text[at]))) ++at;
    const std::string_view run = text.substr(begin, at - begin);
    const std::optional<std::string> changed = mapped(run);
    if (!changed || *changed == run) continue;
    if (!result) result.emplace();
    result->append(text.substr(done, begin - done)).append(*changed);
    done = at;
  }
  if (result) result->append(text.substr(done));
  return result;
}

}  // namespace lockstep::train
