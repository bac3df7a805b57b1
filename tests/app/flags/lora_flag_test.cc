// Files whose names have a '=' themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/flags/flags.h"
#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::lora_flag_test {

std::vector<Adapter> adapters_of(const std::vector<std::string>& loras) {
  std::vector<const char*> argv = {"braid", "generate", "a"};
  for (const auto& lora : loras) argv.insert(argv.end(), {"--lora", lora.c_str()});
  return std::get<GenerateFlags>(parse_command_line(int(argv.size()), argv.data()))
      .options.adapters;
}

TEST(LoraFlag, TakesTheWholeNameOfAFileThatIsThere) {
  const TemporaryFolder folder;
  for (const char* const name : {"eq=0.5.x.safetensors", "x=0.5"}) {
    const auto file = (folder / name).string();
    write_file(file, "there");
    const auto adapters = adapters_of({file, file + "=2"});
    EXPECT_EQ(adapters[0].file, file);
    EXPECT_EQ(adapters[0].scale, 1);
    EXPECT_EQ(adapters[1].file, file);
    EXPECT_EQ(adapters[1].scale, 2);
  }
  const auto absent = adapters_of({(folder / "y=0.5").string()});
  EXPECT_EQ(absent[0].file, folder / "y");
  EXPECT_EQ(absent[0].scale, 0.5);
}

// Such files need not be there: ComfyUI's folder or the hub's cache may have them.
TEST(LoraFlag, TakesWhatIsNoNumberForPartOfTheName) {
  const auto adapters = adapters_of(
      {"plain=0.5.safetensors", "plain=0.5.safetensors=-2", "org/a=b", "a=b=.5", "a=", "a=2="});
  const std::vector<std::pair<std::string, double>> expected = {{"plain=0.5.safetensors", 1},
                                                                {"plain=0.5.safetensors", -2},
                                                                {"org/a=b", 1},
                                                                {"a=b", 0.5},
                                                                {"a=", 1},
                                                                {"a=2=", 1}};
  ASSERT_EQ(adapters.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(adapters[i].file, expected[i].first);
    EXPECT_EQ(adapters[i].scale, expected[i].second) << expected[i].first;
  }
}

TEST(LoraFlag, ScalesThatAreNotFiniteAreNoNames) {
  for (const auto* const lora : {"a=inf", "a=nan", "a=1e39"})
    EXPECT_THAT(message_of([&] { adapters_of({lora}); }), testing::HasSubstr("--lora")) << lora;
  EXPECT_THAT(message_of([&] { adapters_of({"=0.5"}); }),
              testing::HasSubstr("should be FILE or FILE=SCALE"));
}

// A reference may also have another "=" in its name.
TEST(ReferenceFlag, TakesTheWholeNameOfAFileThatIsThere) {
  const TemporaryFolder folder;
  const auto file = (folder / "shot=2").string(), scaled = file + "=0.5";
  write_file(file, "there");
  const std::vector<const char*> argv = {
      "braid",        "generate",    "a",       "--reference", file.c_str(), "--reference",
      scaled.c_str(), "--reference", "a=b.png", "--reference", "c.png=2"};
  const auto pictures =
      std::get<GenerateFlags>(parse_command_line(int(argv.size()), argv.data())).pictures;
  EXPECT_THAT(pictures.references, testing::ElementsAre(file, file, "a=b.png", "c.png"));
  EXPECT_THAT(pictures.reference_scales, testing::ElementsAre(1, 0.5, 1, 2));
}

}  // namespace braid::lora_flag_test
