#include "pipeline/conversion/checked_copy.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "weights/sources/identity.h"

namespace braid {

namespace fs = std::filesystem;

fs::path real_path(const fs::path& path) { return fs::weakly_canonical(fs::absolute(path)); }

bool lies_in(const fs::path& inner, const fs::path& outer) {
  const auto inside = real_path(inner), around = real_path(outer);
  return std::mismatch(around.begin(), around.end(), inside.begin(), inside.end()).first ==
         around.end();
}

void copy_one(const fs::path& from, const fs::path& to) {
  const MappedFile file(from);
  const auto bytes = file.bytes();
  write_file(to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  check(digest(bytes) == digest(MappedFile(to).bytes()), to,
        " is not what was copied: the disk or the memory of this machine is at fault");
}

void copy_all(const fs::path& from, const fs::path& to, const Warn& warn) {
  std::error_code loop;
  const auto kind = fs::status(from, loop).type();
  if (kind != fs::file_type::directory && kind != fs::file_type::regular) {
    if (warn) warn(text_of(from, " is not copied: it is neither a file nor a folder"));
    return;
  }
  try {
    if (kind == fs::file_type::directory) {
      require(!lies_in(to, from), "cannot copy ", from, " into itself, as ", to);
      fs::create_directories(to);
      for (const auto& entry : fs::directory_iterator(from))
        copy_all(entry.path(), to / entry.path().filename(), warn);
      return;
    }
  } catch (const fs::filesystem_error& e) {
    throw Error(text_of("cannot copy ", from, " to ", to, ": ", e.code().message()));
  }
  copy_one(from, to);
}

}  // namespace braid
