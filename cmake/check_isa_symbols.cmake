# Fail when an object file compiled for one instruction set shares inline functions with the others.
#
# Functions of namespace mercer::<isa> are its own, and so are templates instantiated with its types. Any
# other weak function (a std::vector<int>::push_back, say) may be merged with the copy of another file, and
# the copy that survives may use instructions the processor does not have.
execute_process(COMMAND ${NM} --defined-only -P ${OBJECTS} OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} could not list the symbols of ${OBJECTS}.")
endif()

string(LENGTH "${ISA}" length)
string(REGEX MATCHALL "[^\n]+ W [^\n]*" weak "${symbols}")
foreach(symbol IN LISTS weak)
  if(NOT symbol MATCHES "6mercer${length}${ISA}")
    string(REGEX REPLACE " W .*" "" symbol "${symbol}")
    list(APPEND shared ${symbol})
  endif()
endforeach()
if(shared)
  list(JOIN shared "\n  " shared)
  message(FATAL_ERROR "Compiled for ${ISA}, the core contains inline functions from outside of namespace "
                      "mercer::${ISA} (c++filt shows their names):\n  ${shared}\nMake them static, move them "
                      "into the namespace, or do this work in module.cpp.")
endif()
