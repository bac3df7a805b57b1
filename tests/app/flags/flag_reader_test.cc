// How many values a flag takes, and the mark "--" that ends the flags of a command.
#include "app/flags/flag_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "message_of.h"

namespace braid::flag_reader_test {

using testing::HasSubstr;
using testing::StartsWith;

CommandLine parse(std::vector<const char*> line) {
  line.insert(line.begin(), "braid");
  return parse_command_line(int(line.size()), line.data());
}

std::string refusal_of(const std::vector<const char*>& line) {
  return message_of([&] { (void)parse(line); });
}

std::string shown_by(const std::vector<const char*>& line) {
  return std::get<ShowText>(parse(line)).text;
}

TEST(Flags, StandBeforeTheMarkThatEndsThem) {
  const auto* const late = "unexpected argument '--size': flags stand before --";
  EXPECT_EQ(refusal_of({"generate", "a", "--", "--size", "64x64"}), late);
  EXPECT_EQ(refusal_of({"generate", "--", "a", "--size", "64x64"}), late);
  EXPECT_EQ(refusal_of({"plan", "--", "--nonsense"}),
            "unexpected argument '--nonsense': flags stand before --");
  EXPECT_THAT(refusal_of({"generate", "a", "--", "b"}), HasSubstr("goes in quotes"));
  EXPECT_THAT(refusal_of({"--nonsense", "generate", "a"}), HasSubstr("a command comes first"));
}

// They would end the command with exit code 0, and nothing would be drawn.
TEST(Flags, OfTheProgramAreRefusedAfterTheMark) {
  for (const auto* const flag : {"--version", "-V", "--help", "-h", "-hV", "--help=1"}) {
    const auto late = text_of("unexpected argument '", flag, "': flags stand before --");
    EXPECT_EQ(refusal_of({"generate", "a", "--", flag}), late);
    EXPECT_EQ(refusal_of({"generate", "--", "a", flag}), late);
    EXPECT_EQ(refusal_of({"generate", "a", "++", flag}), late);
    EXPECT_EQ(refusal_of({"serve", "--", flag}), late);
    EXPECT_EQ(std::get<GenerateFlags>(parse({"generate", "--", flag})).prompt, flag);
  }
  EXPECT_THAT(refusal_of({"generate", "a", "--", "b", "--version"}), HasSubstr("goes in quotes"));
  EXPECT_THAT(refusal_of({"generate", "a", "--", "--size", "64x64", "-V"}), HasSubstr("'--size'"));
}

TEST(Flags, BeforeTheMarkAskForHelpAndVersion) {
  const auto help = shown_by({"generate", "--help"});
  EXPECT_THAT(help, HasSubstr("--negative-prompt"));
  EXPECT_EQ(shown_by({"generate", "a", "--help", "--", "--version"}), help);
  EXPECT_EQ(shown_by({"help", "generate", "--", "--version"}), help);
  EXPECT_EQ(shown_by({"generate", "a", "--prompt-2", "--", "--help"}), help);
  EXPECT_EQ(shown_by({"--version", "generate", "a"}), shown_by({"--version"}));
  EXPECT_EQ(shown_by({"--help"}), shown_by({"help"}));
}

// Long names of a command's flags, from its help.
std::vector<std::string> flags_of(const char* command) {
  std::vector<std::string> flags;
  std::istringstream help(shown_by({command, "--help"}));
  for (std::string line; std::getline(help, line);) {
    const auto begin = line.find("--");
    if (!line.starts_with("  -") || begin > 6) continue;
    const auto flag = line.substr(begin, line.find_first_of(" ,", begin) - begin);
    if (flag != "--help") flags.push_back(flag);
  }
  return flags;
}

// What follows the value is the prompt, also where a flag may be given several times.
TEST(Flags, TakeOneValueEach) {
  for (const auto* const command : {"generate", "pull", "info"}) {
    const auto flags = flags_of(command);
    EXPECT_GT(flags.size(), 2u);
    for (const auto& flag : flags)
      EXPECT_THAT(refusal_of({command, flag.c_str(), "1", "a fox", "more"}),
                  StartsWith("unexpected argument"))
          << command << ' ' << flag;
  }
  for (const auto* const command : {"serve", "bench", "plan", "verify", "convert"})
    for (const auto& flag : flags_of(command))
      EXPECT_THAT(refusal_of({command, flag.c_str(), "1", "more"}),
                  StartsWith("unexpected argument"))
          << command << ' ' << flag;
  const auto line = parse({"generate", "--lora", "a", "--lora", "b", "--reference", "c", "a fox"});
  const auto& generate = std::get<GenerateFlags>(line);
  EXPECT_EQ(generate.prompt, "a fox");
  EXPECT_EQ(generate.options.adapters.size(), 2u);
  EXPECT_EQ(generate.pictures.references.size(), 1u);
}

}  // namespace braid::flag_reader_test
