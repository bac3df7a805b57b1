#include "pipeline/memory/stated.h"

namespace braid {

StatedMemory stated_in(const Memory& memory) {
  const Memory defaults;
  StatedMemory stated;
  visit_stated(stated, [&](bool& is_stated, auto setting) {
    is_stated = setting(memory) != setting(defaults);
  });
  return stated;
}

}  // namespace braid
