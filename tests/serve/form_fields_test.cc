// Forms as clients write them: lists with and without numbers, and fields that are left empty.
#include "serve/body/form_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "message_of.h"
#include "serve/api_error.h"

namespace braid::serve::form_fields_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

Part text(const std::string& name, std::string_view bytes) { return {name, false, "", bytes}; }
Part file(const std::string& name, const std::string& file) { return {name, true, file, "x"}; }

std::vector<std::string> names_in(const FormFields& fields, const std::string& field) {
  std::vector<std::string> names;
  for (const auto& one : fields.files.at(field)) names.push_back(one.name);
  return names;
}

std::string complaint(const std::vector<Part>& form) {
  return message_of<ApiError>([&] { (void)read_form_fields(form); });
}

// PHP's curl_file_create() and JavaScript's qs, which may also send them in another order.
TEST(FormFields, WithNumbersAreListsInTheirOrder) {
  const auto pictures = read_form_fields({file("image[2]", "c"), file("image[10]", "d"),
                                          file("image[0]", "a"), file("image[1]", "b")});
  EXPECT_THAT(names_in(pictures, "image"), ElementsAre("a", "b", "c", "d"));
  const auto mixed = read_form_fields({file("image[1]", "b"), file("image[]", "a")});
  EXPECT_THAT(names_in(mixed, "image"), ElementsAre("a", "b"));
  const auto numbers = read_form_fields({text("sigmas[1]", "0.5"), text("sigmas[0]", "1")});
  EXPECT_EQ((*numbers.texts)["sigmas"], json({"1", "0.5"}));
}

TEST(FormFields, WithNumbersAndKeysAreObjects) {
  const auto fields =
      read_form_fields({text("lora[0][name]", "ink"), text("lora[1][name]", "odd"),
                        text("lora[1][scale]", "2"), text("lora[3][name]", "third")});
  EXPECT_EQ((*fields.texts)["lora"],
            json({{{"name", "ink"}}, {{"name", "odd"}, {"scale", "2"}}, {{"name", "third"}}}));
}

TEST(FormFields, OfOtherBracketsAreNamesAsTheyStand) {
  const auto fields = read_form_fields(
      {text("svg[model]", "a"), text("b[1234567]", "c"), text("open[", "d"), text("]e[", "f")});
  EXPECT_EQ(*fields.texts,
            json({{"svg[model]", "a"}, {"b[1234567]", "c"}, {"open[", "d"}, {"]e[", "f"}}));
}

TEST(FormFields, OfOneNumberAppearOnce) {
  EXPECT_EQ(complaint({file("image[0]", "a"), file("image[0]", "b")}),
            "the field 'image[0]' appears twice");
  EXPECT_EQ(complaint({text("sigmas[3]", "1"), text("sigmas[3]", "2")}),
            "the field 'sigmas[3]' appears twice");
  EXPECT_EQ(complaint({text("lora[0][name]", "1"), text("lora[00][name]", "2")}),
            "the field 'lora' appears twice");
  EXPECT_EQ(complaint({text("sigmas", "1"), text("sigmas[0]", "2")}),
            "the field 'sigmas' appears twice");
  EXPECT_THAT(complaint({text("lora[0]name", "1")}), HasSubstr("a name, name[] or name[][key]"));
}

}  // namespace braid::serve::form_fields_test
