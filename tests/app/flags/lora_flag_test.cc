// Files whose names have a '=' themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/flags/flags.h"
#include "base/file.h"
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
