# Turns a text file into a C array: cmake -DINPUT=FILE -DOUTPUT=FILE -DNAME=SYMBOL -DHEADER=HEADER -P embed_text.cmake
# Blank lines are left out; what is left is one declaration or part of one a line.
file(READ ${INPUT} TEXT HEX)
string(REGEX REPLACE "(..)" "0x\\1," BYTES "${TEXT}")
string(REGEX REPLACE "((0x..,){24})" "\\1\n" BYTES "${BYTES}")
file(WRITE ${OUTPUT} "/* Made from ${HEADER} by the build. */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {\n${BYTES}0\n};\n")
