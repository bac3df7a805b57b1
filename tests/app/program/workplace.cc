#include "workplace.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

const fs::path kModel = fs::path(BRAID_SOURCE_DIR) / "models" / "demo";

}  // namespace

int free_port() { return TakenPort().number(); }

TakenPort::TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::listen(socket_, 1);
}

TakenPort::~TakenPort() { ::close(socket_); }

int TakenPort::number() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Finished Workplace::draw(std::vector<std::string> arguments) const {
  std::vector<std::string> all = {"generate", "-m", kModel.string(), "--size", "32x32",
                                  "--steps",  "2",  "--overwrite",   "always"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return braid(std::move(all));
}

std::set<std::string> Workplace::files() const {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().filename() != "model") names.insert(entry.path().filename());
  return names;
}

fs::path Workplace::write(const std::string& name, const std::string& contents) const {
  write_file(folder_ / name, contents);
  return folder_ / name;
}

void Workplace::expect_refusal(const Finished& finished, int exit_code,
                               const std::string& words) const {
  EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, testing::HasSubstr(words));
  const auto sentence = finished.err.rfind("braid: ");
  ASSERT_NE(sentence, std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find('\n', sentence), finished.err.size() - 1) << finished.err;
  for (const auto& name : files())
    EXPECT_THAT(name, testing::Not(testing::HasSubstr(".png"))) << "was left";
}

SpoiledModel::SpoiledModel() {
  for (const auto& entry : fs::recursive_directory_iterator(kModel)) {
    const auto copy = folder_ / "model" / fs::relative(entry.path(), kModel);
    fs::create_directories(copy.parent_path());
    if (entry.is_regular_file()) fs::create_symlink(entry.path(), copy);
  }
}

std::string SpoiledModel::contents(const std::string& name) const { return read_file(file(name)); }

void SpoiledModel::replace(const std::string& name, const std::string& contents) const {
  remove(name);
  write_file(file(name), contents);
}

void SpoiledModel::remove(const std::string& name) const { ASSERT_TRUE(fs::remove(file(name))); }

void SpoiledModel::edit_header(const std::string& name,
                               const std::function<void(nlohmann::json& header)>& edit) const {
  const auto old = contents(name);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | std::uint8_t(old[std::size_t(i)]);
  auto header = nlohmann::json::parse(old.substr(8, length));
  edit(header);
  const auto text = header.dump();
  std::string size;
  for (int i = 0; i < 8; ++i) size += char(text.size() >> (8 * i) & 0xff);
  replace(name, size + text + old.substr(8 + length));
}

void SpoiledModel::edit_json(const std::string& name,
                             const std::function<void(nlohmann::json& json)>& edit) const {
  auto json = nlohmann::json::parse(contents(name));
  edit(json);
  replace(name, json.dump());
}

}  // namespace braid
