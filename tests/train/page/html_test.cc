#include "train/page/html.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(Html, MarkupAndQuotesAreEscaped) {
  EXPECT_EQ(html::escaped("a & <b> \"c\" 'd'"), "a &amp; &lt;b&gt; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(html::escaped(""), "");
  EXPECT_EQ(html::escaped("\xff"), "\xef\xbf\xbd");
}

TEST(Html, JsonInAScriptHasNoLessThanSign) {
  EXPECT_EQ(html::script_json("{\"a\":\"</script>\"}"), "{\"a\":\"\\u003c/script>\"}");
}

TEST(Html, ATableHasACaptionAHeadAndRowsNamedByTheirFirstCell) {
  EXPECT_EQ(html::table({"A & B", {"Name", "<x>"}, {{"a", "1"}, {"b", "'", "3"}}}),
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"A &amp; B\"><table>"
            "<caption>A &amp; B</caption>\n"
            "<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">&lt;x&gt;</th></tr></thead>\n"
            "<tbody>\n"
            "<tr><th scope=\"row\">a</th><td>1</td></tr>\n"
            "<tr><th scope=\"row\">b</th><td>&#39;</td><td>3</td></tr>\n"
            "</tbody></table></div>\n");
}

TEST(Html, Base64IsThatOfRfc4648) {
  EXPECT_EQ(html::base64(""), "");
  EXPECT_EQ(html::base64("f"), "Zg==");
  EXPECT_EQ(html::base64("fo"), "Zm8=");
  EXPECT_EQ(html::base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(html::base64("\xff\xfe"), "//4=");
  EXPECT_EQ(html::base64({"\x00\x10\x83\x10\x51\x87\x20\x92\x8b", 9}), "ABCDEFGHIJKL");
}

}  // namespace
}  // namespace lockstep::train
