# Writes ${OUT}, a source that names the commit of this build, if its contents would change. The commit is ${COMMIT}, or is
# read from ${SOURCE}/.git if that exists. Time and machine are left out, so that a build can be repeated.
# cmake -DSOURCE=... -DVERSION=... -DCOMMIT=... -DOUT=... -P commit.cmake
set(commit "${COMMIT}")
if(commit STREQUAL "" AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --long --dirty --abbrev=12 --match v${VERSION}
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(described "")
  endif()
  # v1.2.3-0-g0123456789ab is the release itself; the 0 is the number of later commits. Without a tag it is 0123456789ab.
  if(described MATCHES "^v.*-0-g[0-9a-f]+$")
    set(commit "")
  elseif(described MATCHES "^(v.*-([0-9]+)-g)?([0-9a-f]+)(-dirty)?$")
    set(commit "g${CMAKE_MATCH_3}")
    if(NOT "${CMAKE_MATCH_2}" STREQUAL "")
      set(commit "${CMAKE_MATCH_2}.${commit}")
    endif()
    if(NOT "${CMAKE_MATCH_4}" STREQUAL "")
      set(commit "${commit}.dirty")
    endif()
  endif()
endif()
if(NOT commit MATCHES "^[0-9A-Za-z.-]*$")
  message(FATAL_ERROR "REDLINE_COMMIT: expected letters, digits, dots and dashes, found ${commit}")
endif()
set(text "#include \"actors/cli/commands/commit.hpp\"

namespace redline::actors::cli {
const std::string_view built_commit = \"${commit}\";
}
")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT text STREQUAL "${old}")
  file(WRITE ${OUT} "${text}")
endif()
